// Calls by the rules of all methods: tenant, request id, deadline, retries, errors.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceError } from "@grpc/grpc-js";
import type { ErrorParts, PolynymError } from "./errors.js";
import type { CallOptions, ConnectOptions } from "./options.js";
import { Attempts, type Call } from "./retries.js";
import type { Method, Request, Response, Service, Stub } from "./service.js";
import { partsOfFailure } from "./status.js";
import { type AttemptOptions, Transport } from "./transport.js";

/** The fields that several requests have. */
interface CommonFields {
  tenant?: string;
  requestId?: string;
}

/** The options of a call by `Caller`. */
export interface UnaryOptions extends CallOptions {
  /** When the call ends, in place of `timeoutMs`: a time of `performance.now()`. */
  deadline?: number;
  /** The error of an attempt that was made already. */
  failed?: PolynymError;
}

/** Makes the calls of a client. */
export class Caller {
  readonly #transport: Transport;
  readonly #tenant: string;
  readonly #timeout: number;
  readonly #retries: number;

  constructor(server: string, options: ConnectOptions) {
    this.#tenant = options.tenant ?? "";
    this.#timeout = checkedTimeout(options.timeoutMs ?? 2_000);
    this.#retries = checkedRetries(options.retries ?? 2);
    this.#transport = new Transport(server, options);
  }

  /** When a call that begins now ends. */
  deadline({ timeoutMs }: CallOptions): number {
    return performance.now() + (timeoutMs === undefined ? this.#timeout : checkedTimeout(timeoutMs));
  }

  /** Calls a method with one response. */
  async unary<M extends Method>(
    service: Service,
    method: M,
    request: Request<M>,
    options: UnaryOptions = {},
  ): Promise<Response<M>> {
    const message = this.#message(method, request);
    const path = pathOf(service, method);
    const attempt = attemptOptions(options, options.deadline ?? this.deadline(options));
    const retries = options.retries === undefined ? this.#retries : checkedRetries(options.retries);
    const attempts = new Attempts(callOf(method, message), retries);
    if (options.failed !== undefined) {
      await pause(attempts, { ...options.failed, message: options.failed.message }, attempt);
    }
    for (;;) {
      attempt.signal?.throwIfAborted();
      try {
        return (await this.#transport.unary(path, method, message, attempt)) as Response<M>;
      } catch (error) {
        await pause(attempts, failureOf(error, attempt.signal), attempt);
      }
    }
  }

  /** Calls a method with many responses. */
  async *stream<M extends Method>(
    service: Service,
    method: M,
    request: Request<M>,
    options: CallOptions = {},
  ): AsyncGenerator<Response<M>, void, undefined> {
    const message = this.#message(method, request);
    const attempt = this.#streamOptions(options);
    try {
      const responses = this.#transport.stream(pathOf(service, method), method, message, attempt);
      yield* responses as AsyncGenerator<Response<M>, void, undefined>;
    } catch (error) {
      throw streamError(error, callOf(method, message), attempt.signal);
    }
  }

  /** Calls a method with many requests and many responses. */
  async *duplex<M extends Method>(
    service: Service,
    method: M,
    requests: AsyncIterable<Request<M>> | Iterable<Request<M>>,
    options: CallOptions = {},
  ): AsyncGenerator<Response<M>, void, undefined> {
    const attempt = this.#streamOptions(options);
    try {
      const responses = this.#transport.duplex(
        pathOf(service, method),
        method,
        messages(method, requests),
        attempt,
      );
      yield* responses as AsyncGenerator<Response<M>, void, undefined>;
    } catch (error) {
      throw streamError(error, callOf(method, {}), attempt.signal);
    }
  }

  /** A function for each method of the service. */
  stub<S extends Service>(service: S): Stub<S> {
    const functions = Object.entries(service.methods).map(([name, method]) => {
      const kind = method.requestStream ? "duplex" : method.responseStream ? "stream" : "unary";
      return [name, (request: never, options?: CallOptions) => this[kind](service, method, request, options)];
    });
    return Object.fromEntries(functions) as Stub<S>;
  }

  /** Lets the next call open a new connection. Calls on the former one go on. */
  replaceConnection(): void {
    this.#transport.replace();
  }

  close(): void {
    this.#transport.close();
  }

  #message<M extends Method>(method: M, request: Request<M>): CommonFields {
    const message: CommonFields = method.requestType.fromPartial(request as never);
    if (message.tenant === "") {
      message.tenant = this.#tenant;
    }
    if (message.requestId === "") {
      message.requestId = randomUUID();
    }
    return message;
  }

  #streamOptions(options: CallOptions): AttemptOptions {
    return attemptOptions(options, options.timeoutMs === undefined ? Infinity : this.deadline(options));
  }
}

function attemptOptions({ signal, headers }: CallOptions, deadline: number): AttemptOptions {
  return { signal, headers, deadline };
}

function pathOf(service: Service, method: Method): string {
  return `/${service.fullName}/${method.name}`;
}

function callOf({ name, options }: Method, { requestId }: CommonFields): Call {
  return { name, changes: options.idempotencyLevel !== "NO_SIDE_EFFECTS", requestId };
}

/** Waits before the next attempt, or throws the error of the call if there is none. */
async function pause(attempts: Attempts, failure: ErrorParts, { deadline, signal }: AttemptOptions) {
  const delay = attempts.delay(failure);
  if (delay === undefined || performance.now() + delay >= deadline) {
    throw attempts.error(failure);
  }
  await sleep(delay, undefined, { signal }).catch(() => signal?.throwIfAborted());
}

/** The parts of a failure that a server or the transport reports; throws all others, such as the signal's reason. */
function failureOf(error: unknown, signal: AbortSignal | undefined): ErrorParts {
  signal?.throwIfAborted();
  if (error instanceof Error && "code" in error && "metadata" in error) {
    return partsOfFailure(error as ServiceError);
  }
  throw error;
}

function streamError(error: unknown, call: Call, signal: AbortSignal | undefined): PolynymError {
  const failure = failureOf(error, signal);
  const attempts = new Attempts(call, 0);
  attempts.delay(failure);
  return attempts.error(failure);
}

async function* messages<M extends Method>(
  method: M,
  requests: AsyncIterable<Request<M>> | Iterable<Request<M>>,
): AsyncGenerator<object> {
  for await (const request of requests) {
    yield method.requestType.fromPartial(request as never);
  }
}

function checkedTimeout(timeoutMs: number): number {
  if (!(timeoutMs > 0)) {
    throw new RangeError("timeoutMs must be greater than zero");
  }
  return timeoutMs;
}

function checkedRetries(retries: number): number {
  if (!Number.isInteger(retries) || retries < 0) {
    throw new RangeError("retries must be a whole number from 0 on");
  }
  return retries;
}
