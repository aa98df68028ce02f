// One attempt of a call.
import { type Duplex, Readable } from "node:stream";
import { Client, type ClientReadableStream, Metadata } from "@grpc/grpc-js";
import { type ConnectOptions, type Target, backoffOf, parseTargets } from "../options.js";
import { onAbort } from "../signals.js";
import { channelCredentials, type TokenSource, tokenSource } from "./credentials.js";
import { Server, Servers } from "./servers.js";
import type { Method } from "./service.js";

const USER_AGENT = `polynym-node/${require("polynym/package.json").version}`;
/** The options of an attempt. */
export interface AttemptOptions {
  /** When it ends, in milliseconds of `performance.now()`. */
  deadline: number;
  signal?: AbortSignal;
  headers?: Readonly<Record<string, string>>;
  /** When it was sent: a time of `performance.now()`. */
  sent: number;
  /** The server that has the attempt. The next one prefers another. */
  server?: Server;
}

/** Sends attempts to the servers. */
export class Transport {
  readonly #token: TokenSource;
  readonly #servers: Servers;
  /** The text of the error if no server can be reached. */
  readonly unreachable: string;

  constructor(servers: string | readonly string[], options: ConnectOptions) {
    const targets = parseTargets(servers);
    const names = targets.map(({ name }) => name).join(", ");
    this.unreachable =
      targets.length === 1
        ? `the server ${names} cannot be reached`
        : `none of the servers ${names} can be reached`;
    this.#token = tokenSource(targets, options);
    const credentials = channelCredentials(targets, options);
    const open = (target: Target) => () =>
      new Client(target.address, credentials, channelOptions(target, options));
    this.#servers = new Servers(targets.map((target) => new Server(target.name, open(target))));
  }

  /** Waits until a server is connected, and has the options name it. Fails with `Unreachable`. */
  async connect(options: AttemptOptions): Promise<void> {
    options.server = await this.#servers.next(options.deadline, options.signal, options.server);
  }

  /** A call with one response, to the server of the options. It fails with a `ServiceError`. */
  unary(path: string, method: Method, request: object, options: AttemptOptions): Promise<object> {
    const server = options.server as Server;
    return new Promise((resolve, reject) => {
      const call = server.client.makeUnaryRequest<object, object>(
        path,
        encoder(method),
        decoder(method),
        request,
        this.#metadata(options),
        { deadline: wallClock(options.deadline) },
        (error, response) => {
          leave();
          server.note(error);
          if (error === null) {
            resolve(response as object);
          } else {
            reject(error);
          }
        },
      );
      const leave = onAbort(options.signal, () => call.cancel());
    });
  }

  /** A call with many responses, to the server of the options. It fails with a `ServiceError`. */
  async *stream(
    path: string,
    method: Method,
    request: object,
    options: AttemptOptions,
  ): AsyncGenerator<object> {
    const call = (options.server as Server).client.makeServerStreamRequest<object, object>(
      path,
      encoder(method),
      decoder(method),
      request,
      this.#metadata(options),
      { deadline: wallClock(options.deadline) },
    );
    yield* responses(call, options.signal);
  }

  /**
   * A call with many requests and many responses, sent as fast as the server of the options takes
   * the requests.
   */
  async *duplex(
    path: string,
    method: Method,
    requests: AsyncIterable<object>,
    options: AttemptOptions,
  ): AsyncGenerator<object> {
    const call = (options.server as Server).client.makeBidiStreamRequest<object, object>(
      path,
      encoder(method),
      decoder(method),
      this.#metadata(options),
      { deadline: wallClock(options.deadline) },
    );
    const source = Readable.from(requests);
    source.once("error", (error) => call.destroy(error)).pipe(call as unknown as Duplex);
    try {
      yield* responses(call, options.signal);
    } finally {
      source.destroy();
    }
  }

  close(): void {
    this.#servers.close();
  }

  #metadata({ headers }: AttemptOptions): Metadata {
    const metadata = new Metadata();
    for (const name in headers) {
      metadata.set(name, headers[name] as string);
    }
    const token = this.#token();
    if (token !== undefined) {
      metadata.set("authorization", `Bearer ${token}`);
    }
    return metadata;
  }
}

function channelOptions(target: Target, options: ConnectOptions) {
  const { firstBackoffMs, maxBackoffMs } = backoffOf(options);
  // The addresses of a name take turns. Those of this host are one server.
  const policy = target.loopback ? "pick_first" : "round_robin";
  return {
    "grpc.dns_min_time_between_resolutions_ms": 1_000,
    "grpc.enable_channelz": 0,
    "grpc.enable_retries": 0,
    "grpc.initial_reconnect_backoff_ms": firstBackoffMs,
    // Only while a call is open: a connection that has died in silence ends after 15 s.
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 5_000,
    "grpc.max_reconnect_backoff_ms": maxBackoffMs,
    "grpc.primary_user_agent": USER_AGENT,
    "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ [policy]: {} }] }),
    "grpc.service_config_disable_resolution": 1,
    "grpc.use_local_subchannel_pool": 1,
    // Pages have up to 4 MiB, which smaller windows would send in many round trips.
    "grpc-node.flow_control_window": 1024 * 1024,
    ...(target.loopback ? { "grpc.enable_http_proxy": 0 } : {}),
    ...options.channelOptions,
    interceptors: options.interceptors ?? [],
  };
}

/** A time of `performance.now()` as one of `Date.now()`. */
function wallClock(deadline: number): number {
  return Date.now() + deadline - performance.now();
}

function encoder({ requestType }: Method) {
  return (message: object) => {
    const { buffer, byteOffset, byteLength } = requestType.encode(message as never).finish();
    return Buffer.from(buffer, byteOffset, byteLength);
  };
}

function decoder({ responseType }: Method) {
  return (bytes: Buffer) => responseType.decode(bytes) as object;
}

async function* responses(
  call: ClientReadableStream<object>,
  signal: AbortSignal | undefined,
): AsyncGenerator<object> {
  const leave = onAbort(signal, () => call.cancel());
  try {
    if (signal?.aborted) {
      call.cancel();
    }
    yield* call;
  } finally {
    leave();
    // The stream fails once it is cancelled, and nobody reads that.
    call.on("error", () => {});
    call.cancel();
  }
}
