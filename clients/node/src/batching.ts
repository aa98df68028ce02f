// Concurrent look-ups share requests: the first goes at once, and those that come until it returns go together.
// There is no timer: whether to send is decided when a look-up comes, and when a request returns.
import { DeadlineExceededError, PolynymError } from "./errors.js";
import { Consistency } from "./gen/polynym/v1/directory_service.js";
import type { Identifier } from "./gen/polynym/v1/types.js";
import { type Lookups, type Query, type Resolution, type ResolveOptions, sizeOf } from "./lookups.js";
import { isTransient } from "./retries.js";
import { onAbort } from "./signals.js";

/** The maximum number of requests of one query in flight. */
const MAX_IN_FLIGHT = 4;
/** How long a request may take, in milliseconds, before another is sent beside it. */
const SLOW = 200;
/** The longest delay of a timer. */
const MAX_DELAY = 2 ** 31 - 1;

/** The batches of a client. */
export class Batching {
  readonly #queues = new Map<string, Queue>();

  constructor(private readonly lookups: Lookups) {}

  /** Whether the look-up may share a request. */
  static allows({ consistency, asOf, headers, retries }: ResolveOptions): boolean {
    const alone = asOf ?? headers ?? retries;
    return alone === undefined && consistency !== Consistency.LINEARIZABLE;
  }

  /** Looks an identifier up, together with others of the same query. */
  resolve(query: Query, identifier: Identifier, deadline: number, signal?: AbortSignal): Promise<Resolution> {
    const { tenant, consistency, maxStaleness, showDisabled, readMask } = query;
    const staleness = maxStaleness && [String(maxStaleness.seconds), maxStaleness.nanos];
    const key = JSON.stringify([tenant, consistency, staleness, showDisabled, readMask]);
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = new Queue(this.lookups, query, () => this.#queues.delete(key));
      this.#queues.set(key, queue);
    }
    return queue.add(new Waiter(identifier, deadline, signal));
  }
}

/** The look-ups of one query. */
class Queue {
  #waiting: Waiter[] = [];
  #inFlight = 0;
  #lastSent = 0;

  constructor(
    private readonly lookups: Lookups,
    private readonly query: Query,
    private readonly onIdle: () => void,
  ) {}

  add(waiter: Waiter): Promise<Resolution> {
    this.#waiting.push(waiter);
    this.#flush();
    return waiter.promise;
  }

  #flush() {
    if (!this.#maySend()) {
      return;
    }
    const waiting = this.#waiting.filter((waiter) => !waiter.settled);
    const batch = this.lookups.firstBatch(waiting);
    this.#waiting = waiting.slice(batch.length);
    if (batch.length > 0) {
      void this.#send(batch);
    } else if (this.#inFlight === 0) {
      this.onIdle();
    }
  }

  /** One request at a time makes the largest batches. But one whose answer is late does not hold up the others. */
  #maySend(): boolean {
    const late = performance.now() - this.#lastSent > SLOW;
    return this.#inFlight === 0 || (late && this.#inFlight < MAX_IN_FLIGHT);
  }

  async #send(batch: Waiter[]) {
    this.#inFlight++;
    this.#lastSent = Infinity;
    // Measured from the next turn of the event loop: pending work of the process does not make the request late.
    setImmediate(() => (this.#lastSent = performance.now()));
    const [first] = batch;
    await (batch.length === 1 && first ? this.#single(first) : this.#batch(batch));
    // Callers with a loop of look-ups start their next ones now: these go together.
    setImmediate(() => {
      this.#inFlight--;
      this.#flush();
    });
  }

  async #single(waiter: Waiter, failed?: PolynymError) {
    const { identifier, deadline } = waiter;
    const { signal } = join([waiter]);
    try {
      waiter.resolve(await this.lookups.single(this.query, identifier, { deadline, signal, failed }));
    } catch (error) {
      waiter.reject(error);
    }
  }

  async #batch(batch: Waiter[]) {
    const deadline = Math.max(...batch.map((waiter) => waiter.deadline));
    const { signal } = join(batch);
    try {
      const identifiers = batch.map((waiter) => waiter.identifier);
      const outcomes = await this.lookups.batch(this.query, identifiers, { deadline, signal });
      batch.forEach((waiter, index) => this.#answer(waiter, outcomes[index] as Resolution | PolynymError));
    } catch (error) {
      batch.forEach((waiter) => waiter.reject(error));
    }
  }

  #answer(waiter: Waiter, outcome: Resolution | PolynymError) {
    if (waiter.settled) {
      return;
    }
    if (!(outcome instanceof PolynymError)) {
      waiter.resolve(outcome);
    } else if (isTransient(outcome)) {
      void this.#single(waiter, outcome);
    } else if (outcome.code === "RESOURCE_EXHAUSTED") {
      void this.#single(waiter);
    } else {
      waiter.reject(outcome);
    }
  }
}

/** A caller that waits for its look-up. */
class Waiter {
  readonly size: number;
  readonly promise: Promise<Resolution>;
  settled = false;
  /** Called when the caller leaves before its answer. */
  onLeave: () => void = () => {};
  #resolve!: (resolution: Resolution) => void;
  #reject!: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #unlisten: () => void;

  constructor(
    readonly identifier: Identifier,
    readonly deadline: number,
    signal: AbortSignal | undefined,
  ) {
    this.size = sizeOf(identifier);
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const delay = Math.min(deadline - performance.now(), MAX_DELAY);
    this.#timer = setTimeout(() => this.#leave(deadlineError()), delay);
    this.#unlisten = onAbort(signal, () => this.#leave(signal?.reason));
  }

  resolve(resolution: Resolution) {
    this.#settle();
    this.#resolve(resolution);
  }

  reject(error: unknown) {
    this.#settle();
    this.#reject(error);
  }

  #leave(error: unknown) {
    if (!this.settled) {
      this.reject(error);
      this.onLeave();
    }
  }

  #settle() {
    this.settled = true;
    clearTimeout(this.#timer);
    this.#unlisten();
  }
}

/** A signal that ends a request once all of its callers have left. */
function join(waiters: Waiter[]): { signal: AbortSignal } {
  const controller = new AbortController();
  let present = waiters.length;
  for (const waiter of waiters) {
    waiter.onLeave = () => {
      present--;
      if (present === 0) {
        controller.abort();
      }
    };
  }
  return controller;
}

function deadlineError(): DeadlineExceededError {
  return new DeadlineExceededError({ code: "DEADLINE_EXCEEDED", message: "the deadline has passed" });
}
