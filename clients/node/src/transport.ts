// One attempt of a call.
import { type Duplex, Readable } from "node:stream";
import { Client, type ClientReadableStream, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { channelCredentials, type TokenSource, tokenSource } from "./credentials.js";
import { type ConnectOptions, parseTarget } from "./options.js";
import type { Method } from "./service.js";
import { onAbort } from "./signals.js";

const USER_AGENT = "polynym-node/0.1.0";
/** How many attempts in a row reach their deadlines without an answer on a dead connection. */
const SILENT_DEADLINES = 2;
/** What grpc-js says of a call that had a connection when its deadline came. A server says something else. */
const NO_ANSWER = /^Deadline exceeded.*remote_addr=/;

/** What an attempt needs besides its request. */
export interface AttemptOptions {
  /** When it ends, in milliseconds of `performance.now()`. */
  deadline: number;
  signal?: AbortSignal;
  headers?: Readonly<Record<string, string>>;
}

/** A connection to a server, opened with the first call. */
export class Transport {
  readonly #token: TokenSource;
  readonly #open: () => Client;
  #client: Client;
  #unanswered = 0;
  #isClosed = false;

  constructor(server: string, options: ConnectOptions) {
    const target = parseTarget(server);
    this.#token = tokenSource(target, options);
    const credentials = channelCredentials(target, options);
    const channelOptions = {
      "grpc.enable_channelz": 0,
      "grpc.enable_retries": 0,
      "grpc.initial_reconnect_backoff_ms": 100,
      // Only while a call is open: a connection that has died in silence ends after 15 s.
      "grpc.keepalive_time_ms": 10_000,
      "grpc.keepalive_timeout_ms": 5_000,
      "grpc.max_reconnect_backoff_ms": 5_000,
      "grpc.primary_user_agent": USER_AGENT,
      "grpc.service_config_disable_resolution": 1,
      "grpc.use_local_subchannel_pool": 1,
      // Pages have up to 4 MiB, which smaller windows would send in many round trips.
      "grpc-node.flow_control_window": 1024 * 1024,
      ...(target.loopback ? { "grpc.enable_http_proxy": 0 } : {}),
      ...options.channelOptions,
      interceptors: options.interceptors ?? [],
    };
    this.#open = () => new Client(target.address, credentials, channelOptions);
    this.#client = this.#open();
  }

  /** A call with one response. It fails with a `ServiceError`. */
  unary(path: string, method: Method, request: object, options: AttemptOptions): Promise<object> {
    return new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest<object, object>(
        path,
        encoder(method),
        decoder(method),
        request,
        this.#metadata(options),
        { deadline: wallClock(options.deadline) },
        (error, response) => {
          leave();
          this.#note(error);
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

  /** A call with many responses, sent when the iteration begins. It fails with a `ServiceError`. */
  async *stream(path: string, method: Method, request: object, options: AttemptOptions): AsyncGenerator<object> {
    const call = this.#client.makeServerStreamRequest<object, object>(
      path,
      encoder(method),
      decoder(method),
      request,
      this.#metadata(options),
      { deadline: wallClock(options.deadline) },
    );
    yield* responses(call, options.signal);
  }

  /** A call with many requests and many responses, sent as fast as the server takes the requests. */
  async *duplex(
    path: string,
    method: Method,
    requests: AsyncIterable<object>,
    options: AttemptOptions,
  ): AsyncGenerator<object> {
    const call = this.#client.makeBidiStreamRequest<object, object>(
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

  /** Lets the next call open a new connection. Calls on the former one go on. */
  replace(): void {
    if (!this.#isClosed) {
      this.#unanswered = 0;
      const former = this.#client;
      this.#client = this.#open();
      former.close();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#client.close();
  }

  /** Notes the end of an attempt. The last of several deadlines leaves the connection; calls on it go on. */
  #note(error: ServiceError | null): void {
    if (error === null || error.metadata.get("grpc-status-details-bin").length > 0) {
      this.#unanswered = 0;
    } else if (error.code === status.DEADLINE_EXCEEDED && NO_ANSWER.test(error.details)) {
      this.#unanswered++;
    }
    if (this.#unanswered >= SILENT_DEADLINES) {
      this.replace();
    }
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
