// Concurrent look-ups share requests: the first goes at once, and those that come until it returns
// go together. No look-up waits for a timer, except while a request takes long.
import type { Turn, UnaryOptions } from "../calls/caller.js";
import { isTransient } from "../calls/retries.js";
import { ClosedError, PolynymError, UnreachableError } from "../errors.js";
import { Consistency } from "../gen/polynym/v1/directory_service.js";
import type { Identifier } from "../gen/polynym/v1/types.js";
import { onAbort } from "../signals.js";
import {
  type Lookups,
  type Outcome,
  type Query,
  type Resolution,
  type ResolveOptions,
  needsRoom,
} from "./lookups.js";
import { Semaphore } from "./semaphore.js";
import { Waiter, shared } from "./waiter.js";

/** A request that takes longer, in milliseconds, holds up no others. */
const STALLED = 100;
/** The maximum number of such requests of one query. */
const MAX_STALLED = 8;
/**
 * The maximum number of look-ups of a client that have left their requests and go alone at once.
 */
const MAX_ALONE = 16;

/** The batches of a client. */
export class Batching {
  readonly #queues = new Map<string, Queue>();
  readonly #alone: Semaphore;

  constructor(
    private readonly lookups: Lookups,
    closed: AbortSignal,
  ) {
    this.#alone = new Semaphore(MAX_ALONE, closed);
    onAbort(closed, () => this.#queues.forEach((queue) => queue.close()));
  }

  /** Whether the look-up may share a request. */
  static allows({ consistency, asOf, headers, retries }: ResolveOptions): boolean {
    const alone = asOf ?? headers ?? retries;
    return alone === undefined && consistency !== Consistency.LINEARIZABLE;
  }

  /** Looks an identifier up, together with others of the same query. */
  resolve(
    query: Query,
    identifier: Identifier,
    deadline: number,
    signal?: AbortSignal,
  ): Promise<Resolution> {
    const { tenant, consistency, maxStaleness, showDisabled, readMask } = query;
    const staleness = maxStaleness && [String(maxStaleness.seconds), maxStaleness.nanos];
    const key = JSON.stringify([tenant, consistency, staleness, showDisabled, readMask]);
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = new Queue(this.lookups, query, this.#alone, () => this.#queues.delete(key));
      this.#queues.set(key, queue);
    }
    return queue.add(identifier, deadline, signal);
  }
}

/** The look-ups of one query. */
class Queue {
  #waiting: Waiter[] = [];
  #inFlight = 0;
  #stalled = 0;

  constructor(
    private readonly lookups: Lookups,
    private readonly query: Query,
    private readonly alone: Semaphore,
    private readonly onIdle: () => void,
  ) {}

  add(
    identifier: Identifier,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<Resolution> {
    const onHalfTime = (waiter: Waiter) => void this.#single(waiter, {}, this.alone);
    const waiter = new Waiter(identifier, deadline, signal, onHalfTime);
    this.#waiting.push(waiter);
    this.#flush();
    return waiter.promise;
  }

  /** Those that wait fail. Requests that are under way end. */
  close(): void {
    const waiting = this.#waiting.filter((waiter) => waiter.isQueued);
    this.#waiting = [];
    waiting.forEach((waiter) => waiter.reject(new ClosedError()));
  }

  /** Sends those that wait. One request at a time makes the largest batches. */
  #flush() {
    if (this.#inFlight > 0) {
      return;
    }
    const waiting = this.#waiting.filter((waiter) => waiter.isQueued);
    const batch = this.lookups.firstBatch(waiting);
    this.#waiting = waiting.slice(batch.length);
    if (batch.length > 0) {
      void this.#send(batch);
    } else if (this.#stalled === 0) {
      this.onIdle();
    }
  }

  async #send(batch: Waiter[]) {
    let isStalled = false;
    this.#inFlight++;
    const stall = () => {
      if (this.#stalled < MAX_STALLED) {
        isStalled = true;
        this.#stalled++;
        this.#inFlight--;
        this.#flush();
      }
    };
    // An answer that has come while the process was busy is read before the request counts as
    // stalled.
    let pending: NodeJS.Immediate | undefined;
    const timer = setTimeout(() => (pending = setImmediate(stall)), STALLED);
    const [first] = batch;
    await (batch.length === 1 && first ? this.#single(first) : this.#shared(batch));
    clearTimeout(timer);
    clearImmediate(pending);
    // Callers with a loop of look-ups start their next ones now: these go together.
    setImmediate(() => {
      isStalled ? this.#stalled-- : this.#inFlight--;
      this.#flush();
    });
  }

  /** Looks one up by the rules of all calls. */
  async #single(waiter: Waiter, options: Pick<UnaryOptions, "failed"> = {}, alone?: Semaphore) {
    const { identifier, deadline } = waiter;
    const signal = waiter.goAlone();
    const turn: Turn | undefined = alone && ((attempt) => alone.run(attempt, deadline, signal));
    try {
      waiter.resolve(
        await this.lookups.single(this.query, identifier, { ...options, deadline, signal, turn }),
      );
    } catch (error) {
      waiter.reject(error);
    }
  }

  async #shared(batch: Waiter[]) {
    const deadline = Math.max(...batch.map((waiter) => waiter.deadline));
    const signal = shared(batch);
    const identifiers = batch.map((waiter) => waiter.identifier);
    const staying = () => batch.filter((waiter) => waiter.isShared);
    try {
      const outcomes = await this.lookups.batch(this.query, identifiers, {
        deadline,
        signal,
        retries: 0,
      });
      if (outcomes === undefined) {
        staying().forEach((waiter) => waiter.queue());
        this.#waiting.unshift(...batch);
      } else {
        batch.forEach((waiter, index) => this.#answer(waiter, outcomes[index] as Outcome));
      }
    } catch (error) {
      staying().forEach((waiter) => this.#fail(waiter, error));
    }
  }

  #answer(waiter: Waiter, outcome: Outcome): void {
    if (!waiter.isShared) {
      return;
    }
    if (outcome instanceof PolynymError) {
      this.#fail(waiter, outcome);
    } else {
      waiter.resolve(outcome);
    }
  }

  /**
   * The shared request counts as the first attempt of those that go alone, unless it had no room
   * for them.
   */
  #fail(waiter: Waiter, error: unknown): void {
    if (error instanceof UnreachableError || !(error instanceof PolynymError)) {
      waiter.reject(error);
    } else if (isTransient(error)) {
      void this.#single(waiter, { failed: error }, this.alone);
    } else if (needsRoom(error)) {
      void this.#single(waiter, {}, this.alone);
    } else {
      waiter.reject(error);
    }
  }
}
