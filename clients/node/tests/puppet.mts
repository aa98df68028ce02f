// The client as the scenarios' testbed moves it: steps and answers are JSON.
import {
  BatchResolveIdentitiesRequest,
  BatchResolveIdentitiesResponse_Found as Found,
  type Client,
  CreateUserRequest,
  Event,
  type Identifier,
  ListHistoryRequest,
  OutcomeUnknownError,
  PolynymError,
  ResolveIdentityRequest,
  ResolveIdentityResponse,
  type ResolveOptions,
  SearchUsersRequest,
  User,
  type Watch,
  WatchRequest,
  type WatchedEvent,
  connect,
} from "polynym";
import * as polynym from "polynym";

/** A codec of messages. */
interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

/** A step of a scenario. */
interface Step {
  id: number;
  op: string;
  [field: string]: unknown;
}

type Answer = Record<string, unknown>;

/** Takes the steps. */
export class Puppet {
  #client!: Client;
  #watch?: Watch;
  #loops?: Loops;

  /** Takes one step, and returns its answer. */
  async take(step: Step): Promise<Answer> {
    return { id: step.id, ...(await this.#take(step)) };
  }

  close() {
    this.#watch?.close();
    this.#client?.close();
  }

  #take(step: Step): Answer | Promise<Answer> {
    switch (step.op) {
      case "connect":
        return this.#connect(step);
      case "call":
        return outcome(this.#call(step), responseOf(step));
      case "resolve":
        return outcome(this.#resolve(step.request, step.timeout_ms), ResolveIdentityResponse);
      case "resolve_concurrently":
        return this.#resolveConcurrently(step);
      case "resolve_many":
        return this.#resolveMany(step);
      case "search":
        return list(this.#search(step), User);
      case "history":
        return list(this.#history(step), Event);
      case "watch":
        return this.#beginWatch(step);
      case "watched":
        return this.#endWatch(step);
      case "keep_resolving":
        return this.#keepResolving(step);
      case "kept":
        return this.#kept();
      case "get_or_create":
        return this.#getOrCreate(step);
      case "close":
        this.#client.close();
        return {};
      default:
        throw new Error(`no step ${step.op}`);
    }
  }

  #connect({ server, token, tenant, timeout_ms, batching }: Step): Answer {
    this.close();
    this.#client = connect(server as string, {
      token: (token as string | null) ?? undefined,
      tenant: tenant as string | undefined,
      timeoutMs: timeout_ms as number,
      batching: batching as boolean,
    });
    return {};
  }

  #call(step: Step): Promise<unknown> {
    const stubs = {
      AdminService: this.#client.admin,
      DirectoryService: this.#client.directory,
      InboxService: this.#client.inbox,
      RegistryService: this.#client.registry,
    };
    const stub = stubs[step.service as keyof typeof stubs] as unknown as Record<
      string,
      (request: unknown, options: object) => Promise<unknown>
    >;
    const method = methodOf(step);
    return stub[lowerFirst(step.method)]!(
      decode(method.requestType, step.request),
      timeout(step.timeout_ms),
    );
  }

  #resolve(request: unknown, timeoutMs: unknown) {
    const { identifier, ...query } = decode(ResolveIdentityRequest, request);
    return this.#client.resolve(identifier as Identifier, {
      ...optionsOf(query),
      ...timeout(timeoutMs),
    });
  }

  async #resolveConcurrently({ requests, timeouts_ms }: Step): Promise<Answer> {
    const timeouts = (timeouts_ms ?? []) as unknown[];
    const calls = (requests as unknown[]).map((request, index) =>
      outcome(this.#resolve(request, timeouts[index]), ResolveIdentityResponse),
    );
    return { results: await Promise.all(calls) };
  }

  async #resolveMany({ request }: Step): Promise<Answer> {
    const { identifiers, ...query } = decode(BatchResolveIdentitiesRequest, request);
    const outcomes = await this.#client.resolveMany(identifiers, optionsOf(query));
    return {
      results: outcomes.map((item) =>
        item instanceof PolynymError ? errorJson(item) : ok(item, Found),
      ),
    };
  }

  #search({ request }: Step): AsyncIterable<User> {
    const { filter, readMask, ...options } = decode(SearchUsersRequest, request);
    return this.#client.search(filter, { ...options, fields: readMask });
  }

  #history({ request }: Step): AsyncIterable<Event> {
    const { user, ...options } = decode(ListHistoryRequest, request);
    return this.#client.history(user?.value ?? "", options);
  }

  #keepResolving({ request }: Step): Answer {
    this.#loops = new Loops(() => this.#resolve(request, null));
    return {};
  }

  async #kept(): Promise<Answer> {
    return (await this.#loops?.end()) ?? {};
  }

  async #getOrCreate({ request, concurrency }: Step): Promise<Answer> {
    const { user } = decode(CreateUserRequest, request);
    const identifier = user?.identities[0]?.identifier as Identifier;
    const once = async () => {
      try {
        const got = await this.#client.getOrCreate(identifier, user);
        return { ...ok(got.user, User), created: got.created };
      } catch (error) {
        return errorJson(error);
      }
    };
    if (typeof concurrency !== "number") {
      return once();
    }
    return { results: await Promise.all(Array.from({ length: concurrency }, once)) };
  }

  async #beginWatch({ request }: Step): Promise<Answer> {
    this.#watch?.close();
    this.#watch = this.#client.watch(decode(WatchRequest, request));
    return outcome(this.#watch.started);
  }

  async #endWatch({ count, timeout_ms }: Step): Promise<Answer> {
    const watch = this.#watch as Watch;
    const timer = setTimeout(() => watch.close(), timeout_ms as number);
    const answer = await list(firstOf(watch, count as number), Event);
    clearTimeout(timer);
    return answer;
  }
}

/** Callers that look up one identifier again and again. */
class Loops {
  #answers = 0;
  #isEnded = false;
  readonly #errors: Answer[] = [];
  readonly #loops: Promise<void>[];

  constructor(resolve: () => Promise<unknown>) {
    this.#loops = Array.from({ length: 8 }, () => this.#loop(resolve));
  }

  async end(): Promise<Answer> {
    this.#isEnded = true;
    await Promise.all(this.#loops);
    return { answers: this.#answers, errors: this.#errors.slice(0, 20) };
  }

  async #loop(resolve: () => Promise<unknown>) {
    while (!this.#isEnded) {
      await resolve().then(
        () => this.#answers++,
        (error) => this.#errors.push(errorJson(error).error as Answer),
      );
    }
  }
}

async function* firstOf(watch: AsyncIterable<WatchedEvent>, count: number): AsyncGenerator<Event> {
  if (count > 0) {
    for await (const { event } of watch) {
      yield event;
      if (--count === 0) {
        return;
      }
    }
  }
}

async function list<T>(items: AsyncIterable<T>, codec: Codec<T>): Promise<Answer> {
  const results: Answer[] = [];
  try {
    for await (const item of items) {
      results.push(ok(item, codec));
    }
  } catch (error) {
    results.push(errorJson(error));
  }
  return { results };
}

async function outcome<T>(call: Promise<T>, codec?: Codec<T>): Promise<Answer> {
  try {
    const message = await call;
    return codec === undefined ? {} : ok(message, codec);
  } catch (error) {
    return errorJson(error);
  }
}

function ok<T>(message: T, codec: Codec<T>): Answer {
  return { ok: Buffer.from(codec.encode(message).finish()).toString("base64") };
}

function errorJson(error: unknown): Answer {
  if (!(error instanceof PolynymError)) {
    throw error;
  }
  const { name, code, reason, field, retryAfterMs, owner, requestId } = error;
  const type = error.constructor === PolynymError ? code : screaming(name.replace(/Error$/, ""));
  if ((type === "OUTCOME_UNKNOWN") !== error instanceof OutcomeUnknownError) {
    throw error;
  }
  return {
    error: {
      type,
      code,
      reason,
      field,
      retry_after_ms: retryAfterMs,
      owner,
      request_id: requestId,
    },
  };
}

/** `NotFound` as `NOT_FOUND`. */
function screaming(name: string): string {
  return name.replace(/(?!^)[A-Z]/g, "_$&").toUpperCase();
}

type Query = Omit<ResolveIdentityRequest, "identifier">;

function optionsOf({ maxStaleness, readMask, ...query }: Query): ResolveOptions {
  const maxStalenessMs =
    maxStaleness && Number(maxStaleness.seconds) * 1_000 + maxStaleness.nanos / 1e6;
  return { ...query, fields: readMask, maxStalenessMs };
}

function timeout(timeoutMs: unknown) {
  return typeof timeoutMs === "number" ? { timeoutMs } : {};
}

function methodOf({ service, method }: Step) {
  const definition = polynym[`${service}Definition` as "DirectoryServiceDefinition"];
  return definition.methods[lowerFirst(method) as "getUser"];
}

function responseOf(step: Step): Codec<unknown> {
  return methodOf(step).responseType as Codec<unknown>;
}

function decode<T>(codec: Codec<T>, request: unknown): T {
  return codec.decode(Buffer.from(request as string, "base64"));
}

function lowerFirst(name: unknown): string {
  return String(name).replace(/^./, (letter) => letter.toLowerCase());
}
