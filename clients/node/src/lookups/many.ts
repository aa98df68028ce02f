// Look-ups of any number of identifiers.
import type { Caller } from "../calls/caller.js";
import { type Attempts, isTransient } from "../calls/retries.js";
import { type Code, PolynymError, UnreachableError } from "../errors.js";
import type { Identifier } from "../gen/polynym/v1/types.js";
import { until } from "../signals.js";
import {
  type Lookups,
  type Outcome,
  type Query,
  type ResolveOptions,
  isTruncated,
  needsRoom,
  sizeOf,
} from "./lookups.js";

/** Codes of failures after which no other request would succeed. */
const FINAL: ReadonlySet<Code> = new Set<Code>([
  "CANCELLED",
  "DEADLINE_EXCEEDED",
  "PERMISSION_DENIED",
  "UNAUTHENTICATED",
]);

/** An identifier, with its place. */
interface Item {
  identifier: Identifier;
  index: number;
  size: number;
  /** How many attempts of it have failed. */
  failed: number;
}

/** The look-ups of one call of `resolveMany`. */
export class Many {
  readonly #outcomes: Outcome[];
  /** The items that were not requested yet. */
  #items: Item[];
  /** The items to request one at a time. */
  #alone: Item[] = [];
  /** The items that the server refused for now. */
  #refused: Item[] = [];

  constructor(
    private readonly caller: Caller,
    private readonly lookups: Lookups,
    private readonly query: Query,
    identifiers: readonly Identifier[],
    private readonly options: ResolveOptions,
  ) {
    this.#items = identifiers.map((identifier, index) => ({
      identifier,
      index,
      size: sizeOf(identifier),
      failed: 0,
    }));
    this.#outcomes = new Array<Outcome>(identifiers.length);
  }

  /** The outcomes, in the order of the identifiers. */
  async outcomes(): Promise<Outcome[]> {
    do {
      while (this.#alone.length + this.#items.length > 0) {
        const item = this.#alone.shift();
        await (item ? this.#askAlone(item) : this.#askBatch());
      }
    } while (await this.#again());
    return this.#outcomes;
  }

  async #askBatch(): Promise<void> {
    const batch = this.lookups.firstBatch(this.#items);
    this.#items = this.#items.slice(batch.length);
    const identifiers = batch.map(({ identifier }) => identifier);
    const attempts = this.#attempts(batch);
    try {
      const options = { ...this.options, attempts };
      const outcomes = await this.lookups.batch(this.query, identifiers, options);
      batch.forEach((item) => (item.failed = attempts.failed));
      if (outcomes === undefined) {
        this.#items.unshift(...batch);
      } else {
        this.#take(batch, outcomes, attempts.mayRepeat);
      }
    } catch (error) {
      this.#fail(batch, error);
    }
  }

  #take(batch: Item[], outcomes: Outcome[], mayRepeat: boolean): void {
    const those = (is: (outcome: Outcome) => boolean) =>
      batch.filter((_, item) => is(outcomes[item] as Outcome));
    batch.forEach(({ index }, item) => (this.#outcomes[index] = outcomes[item] as Outcome));
    if (mayRepeat) {
      this.#refused.push(
        ...those((outcome) => outcome instanceof PolynymError && isTransient(outcome)),
      );
    }
    const truncated = those(isTruncated);
    // A response has at least one item.
    const alone = truncated.length === batch.length ? truncated.splice(0, 1) : [];
    this.#items.unshift(...truncated);
    this.#alone = [...alone, ...those((outcome) => needsRoom(outcome) && !isTruncated(outcome))];
  }

  async #askAlone(item: Item): Promise<void> {
    try {
      this.#outcomes[item.index] = await this.lookups.single(this.query, item.identifier, {
        ...this.options,
        attempts: this.#attempts([item]),
      });
    } catch (error) {
      this.#fail([item], error);
    }
  }

  /**
   * The items of a failed request have its error, and all others if no other request would succeed.
   */
  #fail(items: Item[], error: unknown): void {
    const failure = this.options.signal?.aborted ? cancelled(error) : error;
    if (!(failure instanceof PolynymError)) {
      throw failure;
    }
    let failed = items;
    if (failure instanceof UnreachableError || FINAL.has(failure.code)) {
      failed = [...items, ...this.#alone, ...this.#items, ...this.#refused];
      [this.#alone, this.#items, this.#refused] = [[], [], []];
    }
    failed.forEach(({ index }) => (this.#outcomes[index] = failure));
  }

  /**
   * Waits until the server may be asked again for what it refused. Returns whether there is
   * something.
   */
  async #again(): Promise<boolean> {
    const failures = this.#refused.map(({ index }) => this.#outcomes[index] as PolynymError);
    const [failure] = failures.sort((a, b) => (b.retryAfterMs ?? 0) - (a.retryAfterMs ?? 0));
    const attempts = this.#attempts(this.#refused);
    const delay = failure && attempts.resume(failure);
    const time = performance.now() + (delay ?? Infinity);
    if (time >= this.caller.deadline(this.options)) {
      return false;
    }
    const signals = [this.options.signal, this.caller.closed];
    await until(time, signals);
    [this.#items, this.#refused] = [this.#refused, []];
    this.#items.forEach((item) => (item.failed = attempts.failed));
    const ended = signals.find((signal) => signal?.aborted);
    if (ended !== undefined) {
      this.#fail([], ended.reason);
    }
    return this.#items.length > 0;
  }

  /** The attempts of a request for these items: as many are left as each of them has. */
  #attempts(items: Item[]): Attempts {
    const failed = items.reduce((most, item) => Math.max(most, item.failed), 0);
    return this.caller.attempts({ name: "resolveMany", changes: false }, this.options, failed);
  }
}

function cancelled(cause: unknown): PolynymError {
  return new PolynymError({ code: "CANCELLED", message: "the call was cancelled", cause });
}
