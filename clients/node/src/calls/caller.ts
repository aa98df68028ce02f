// Calls by the rules of all methods: tenant, request id, deadline, retries, errors.
import { randomUUID } from "node:crypto";
import { ClosedError, type PolynymError } from "../errors.js";
import {
  type CallOptions,
  type ConnectOptions,
  backoffOf,
  checkNames,
  checkedRetries,
  checkedTimeout,
} from "../options.js";
import { until } from "../signals.js";
import { Observed } from "./observer.js";
import { Attempts, Budget, type Call, type Rules } from "./retries.js";
import type { Server } from "./servers.js";
import type { Method, Request, Response, Service, Stub } from "./service.js";
import { type Failure, failureOf } from "./status.js";
import { type AttemptOptions, Transport } from "./transport.js";

/** Half of the time before its deadline in which a call no longer waits for a server. */
const LEAST_HALF_MS = 10;

/** The fields that several requests have. */
interface CommonFields {
  tenant?: string;
  requestId?: string;
}

/** Runs an attempt when it is its turn. */
export type Turn = <T>(attempt: () => Promise<T>) => Promise<T>;

/** The options of a call by `Caller`. */
export interface UnaryOptions extends CallOptions {
  /** When the call ends, in place of `timeoutMs`: a time of `performance.now()`. */
  deadline?: number;
  /** The attempts of the call, if it had some before. */
  attempts?: Attempts;
  /** The error of a shared attempt that was made already. */
  failed?: PolynymError;
  /** Waits for the turn of each attempt. */
  turn?: Turn;
}

/** The options of a stream by `Caller`. */
export interface StreamOptions extends CallOptions {
  /** The server that had the stream before: another one is preferred. */
  former?: Server;
  /** The attempts to get its first response. By default there is one. */
  attempts?: Attempts;
  /** Is called with the server that the stream is sent to. */
  onServer?: (server: Server) => void;
}

/** Makes the calls of a client. */
export class Caller {
  readonly #transport: Transport;
  readonly #tenant: string;
  readonly #timeout: number;
  readonly #rules: Rules;
  readonly #observer: ConnectOptions["observer"];
  readonly #closed = new AbortController();

  constructor(servers: string | readonly string[], options: ConnectOptions) {
    checkNames(options);
    this.#tenant = options.tenant ?? "";
    this.#timeout = checkedTimeout(options.timeoutMs ?? 2_000);
    const retries = checkedRetries(options.retries ?? 2);
    this.#observer = options.observer;
    this.#transport = new Transport(servers, options);
    const { unreachable } = this.#transport;
    this.#rules = { ...backoffOf(options), retries, budget: new Budget(), unreachable };
  }

  /** Aborted when the client is closed. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** When a call that begins now ends. */
  deadline({ timeoutMs }: CallOptions): number {
    return (
      performance.now() + (timeoutMs === undefined ? this.#timeout : checkedTimeout(timeoutMs))
    );
  }

  /** The attempts of a call with these options. */
  attempts(call: Call, { retries }: CallOptions = {}, failed = 0): Attempts {
    const rules =
      retries === undefined ? this.#rules : { ...this.#rules, retries: checkedRetries(retries) };
    return new Attempts(call, rules, failed);
  }

  /** Waits until a server is connected. */
  async connect(options: CallOptions = {}): Promise<void> {
    const call = { name: "connect", changes: false };
    await this.#connect(
      this.attempts(call, options),
      attemptOptions(options, this.deadline(options)),
    );
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
    const { attempts = this.attempts(callOf(method, message), options) } = options;
    const { failed, turn = atOnce } = options;
    if (failed !== undefined) {
      const failure = { ...failed, message: failed.message, cause: failed.cause };
      await this.#wait(attempts, failure, attempts.resume(failure), attempt);
    }
    const send = async () => {
      await this.#transport.connect(attempt);
      return turn(() => {
        attempt.sent = performance.now();
        return this.#transport.unary(path, method, message, attempt);
      });
    };
    for (;;) {
      try {
        const observed = new Observed(this.#observer, path, attempts, attempt);
        const response = (await observed.end(send())) as Response<M>;
        this.#rules.budget.answered();
        return response;
      } catch (error) {
        await this.#pause(attempts, error, attempt);
      }
    }
  }

  /** Calls a method with many responses. */
  stream<M extends Method>(
    service: Service,
    method: M,
    request: Request<M>,
    options: StreamOptions = {},
  ): AsyncGenerator<Response<M>, void, undefined> {
    const message = this.#message(method, request);
    const path = pathOf(service, method);
    const send = (attempt: AttemptOptions) =>
      this.#transport.stream(path, method, message, attempt);
    return this.#stream(path, method, callOf(method, message), send, options);
  }

  /** Calls a method with many requests and many responses. */
  duplex<M extends Method>(
    service: Service,
    method: M,
    requests: AsyncIterable<Request<M>> | Iterable<Request<M>>,
    options: CallOptions = {},
  ): AsyncGenerator<Response<M>, void, undefined> {
    const path = pathOf(service, method);
    const send = (attempt: AttemptOptions) =>
      this.#transport.duplex(path, method, messages(method, requests), attempt);
    return this.#stream(path, method, callOf(method, {}), send, options);
  }

  /** A function for each method of the service. */
  stub<S extends Service>(service: S): Stub<S> {
    const functions = Object.entries(service.methods).map(([name, method]) => {
      const kind = method.requestStream ? "duplex" : method.responseStream ? "stream" : "unary";
      return [
        name,
        (request: never, options?: CallOptions) => this[kind](service, method, request, options),
      ];
    });
    return Object.fromEntries(functions) as Stub<S>;
  }

  close(): void {
    this.#closed.abort(new ClosedError());
    this.#transport.close();
  }

  /**
   * Connects within the deadline of a call with one response, and sends. A call that no server
   * has seen is sent again, unless its requests are used up.
   */
  async *#stream<R>(
    path: string,
    { requestStream }: Method,
    call: Call,
    send: (attempt: AttemptOptions) => AsyncGenerator<object>,
    options: StreamOptions,
  ): AsyncGenerator<R, void, undefined> {
    const attempt = attemptOptions(options, this.deadline(options));
    attempt.server = options.former;
    const once = { ...this.#rules, retries: 0, budget: new Budget() };
    const { attempts = new Attempts(call, once) } = options;
    let isLast = requestStream;
    for (;;) {
      await this.#connect(attempts, attempt);
      attempt.sent = performance.now();
      options.onServer?.(attempt.server as Server);
      const observed = new Observed(this.#observer, path, attempts, attempt);
      const deadline = options.timeoutMs === undefined ? Infinity : attempt.deadline;
      try {
        for await (const response of observed.each(send({ ...attempt, deadline }))) {
          isLast = true;
          yield response as R;
        }
        return;
      } catch (error) {
        await this.#pause(attempts, error, isLast ? { ...attempt, deadline: 0 } : attempt);
      }
    }
  }

  async #connect(attempts: Attempts, attempt: AttemptOptions): Promise<void> {
    for (;;) {
      try {
        await this.#transport.connect(attempt);
        return;
      } catch (error) {
        await this.#pause(attempts, error, attempt);
      }
    }
  }

  /** Waits before the next attempt, or throws the error of the call if there is none. */
  async #pause(attempts: Attempts, error: unknown, attempt: AttemptOptions): Promise<void> {
    const failure = failureOf(error);
    if (failure === undefined) {
      throw attempts.ended(attempt.signal?.aborted ? attempt.signal.reason : error);
    }
    if (attempt.signal?.aborted) {
      attempts.settle(failure);
      throw attempts.ended(attempt.signal.reason);
    }
    await this.#wait(attempts, failure, attempts.delay(failure, attempt), attempt);
  }

  async #wait(
    attempts: Attempts,
    failure: Failure,
    delay: number | undefined,
    attempt: AttemptOptions,
  ) {
    const now = performance.now();
    let wait = delay ?? Infinity;
    // A server that is back by the deadline is found.
    const half = (attempt.deadline - now) / 2;
    if (delay !== undefined && failure.neverSent && half > LEAST_HALF_MS) {
      wait = Math.min(delay, half);
    }
    if (now + wait >= attempt.deadline) {
      throw attempts.error(failure);
    }
    const time = now + wait;
    const signals = [attempt.signal, this.closed];
    await until(time, signals);
    const ended = signals.find((signal) => signal?.aborted);
    if (ended !== undefined) {
      throw attempts.ended(ended.reason);
    }
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
}

function atOnce<T>(attempt: () => Promise<T>): Promise<T> {
  return attempt();
}

function attemptOptions({ signal, headers }: CallOptions, deadline: number): AttemptOptions {
  return { signal, headers, deadline, sent: 0 };
}

function pathOf(service: Service, method: Method): string {
  return `/${service.fullName}/${method.name}`;
}

function callOf({ name, options }: Method, { requestId }: CommonFields): Call {
  return { name, changes: options.idempotencyLevel !== "NO_SIDE_EFFECTS", requestId };
}

async function* messages<M extends Method>(
  method: M,
  requests: AsyncIterable<Request<M>> | Iterable<Request<M>>,
): AsyncGenerator<object> {
  for await (const request of requests) {
    yield method.requestType.fromPartial(request as never);
  }
}
