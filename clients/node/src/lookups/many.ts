// Look-ups of any number of identifiers.
import type { Caller } from "../calls/caller.js";
import { type Attempts, isTransient } from "../calls/retries.js";
import { type Code, PolynymError } from "../errors.js";
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
}

/** The look-ups of one call of `resolveMany`. */
export class Many {
  readonly #outcomes: Outcome[];
  readonly #attempts: Attempts;
  /** What is yet to be asked for. */
  #items: Item[];
  /** What the server refused for now. */
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
    }));
    this.#outcomes = new Array<Outcome>(identifiers.length);
    this.#attempts = caller.attempts({ name: "resolveMany", changes: false }, options);
  }

  /** The outcomes, in the order of the identifiers. */
  async outcomes(): Promise<Outcome[]> {
    do {
      while (this.#items.length > 0) {
        const batch = this.lookups.firstBatch(this.#items);
        this.#items = this.#items.slice(batch.length);
        await this.#ask(batch);
      }
    } while (await this.#again());
    return this.#outcomes;
  }

  async #ask(batch: Item[]): Promise<void> {
    const identifiers = batch.map(({ identifier }) => identifier);
    try {
      const outcomes = await this.lookups.batch(this.query, identifiers, this.#callOptions());
      if (outcomes === undefined) {
        this.#items.unshift(...batch);
      } else {
        await this.#take(batch, outcomes);
      }
    } catch (error) {
      this.#fail(batch, error);
    }
  }

  async #take(batch: Item[], outcomes: Outcome[]): Promise<void> {
    const those = (is: (outcome: Outcome) => boolean) =>
      batch.filter((_, item) => is(outcomes[item] as Outcome));
    batch.forEach(({ index }, item) => (this.#outcomes[index] = outcomes[item] as Outcome));
    this.#refused.push(
      ...those((outcome) => outcome instanceof PolynymError && isTransient(outcome)),
    );
    const truncated = those(isTruncated);
    // A response has at least one item.
    const alone = truncated.length === batch.length ? truncated.splice(0, 1) : [];
    this.#items.unshift(...truncated);
    for (const item of [
      ...alone,
      ...those((outcome) => needsRoom(outcome) && !isTruncated(outcome)),
    ]) {
      await this.#askAlone(item);
    }
  }

  async #askAlone(item: Item): Promise<void> {
    try {
      this.#outcomes[item.index] = await this.lookups.single(
        this.query,
        item.identifier,
        this.#callOptions(),
      );
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
    const isFinal = FINAL.has(failure.code);
    for (const { index } of isFinal ? [...items, ...this.#items] : items) {
      this.#outcomes[index] = failure;
    }
    if (isFinal) {
      [this.#items, this.#refused] = [[], []];
    }
  }

  /**
   * Waits until the server may be asked again for what it refused. Returns whether there is
   * something.
   */
  async #again(): Promise<boolean> {
    const failures = this.#refused.map(({ index }) => this.#outcomes[index] as PolynymError);
    const [failure] = failures.sort((a, b) => (b.retryAfterMs ?? 0) - (a.retryAfterMs ?? 0));
    const delay = failure && this.#attempts.resume(failure);
    const time = performance.now() + (delay ?? Infinity);
    if (time >= this.caller.deadline(this.options)) {
      return false;
    }
    const signals = [this.options.signal, this.caller.closed];
    await until(time, signals);
    [this.#items, this.#refused] = [this.#refused, []];
    return !signals.some((signal) => signal?.aborted);
  }

  #callOptions(): ResolveOptions {
    return { ...this.options, retries: this.#attempts.left };
  }
}

function cancelled(cause: unknown): PolynymError {
  return new PolynymError({ code: "CANCELLED", message: "the call was cancelled", cause });
}
