// The observer, which gets each attempt.
import { inspect } from "node:util";
import type { ObservedAttempt, Observer } from "../options.js";
import type { Attempts } from "./retries.js";
import { failureOf } from "./status.js";
import type { AttemptOptions } from "./transport.js";

/** An attempt under way. */
export class Observed {
  readonly #begin = performance.now();
  readonly #number: number;

  constructor(
    private readonly observer: Observer | undefined,
    private readonly path: string,
    attempts: Attempts,
    private readonly options: AttemptOptions,
  ) {
    this.#number = attempts.number;
  }

  /** The result of the attempt. */
  async end<T>(attempt: Promise<T>): Promise<T> {
    try {
      const result = await attempt;
      this.#report();
      return result;
    } catch (error) {
      this.#report(error);
      throw error;
    }
  }

  /** The responses of the attempt. */
  async *each<T>(responses: AsyncGenerator<T>): AsyncGenerator<T> {
    let failure: unknown;
    try {
      yield* responses;
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      this.#report(failure);
    }
  }

  #report(error?: unknown): void {
    const { observer, options, path } = this;
    const failure = failureOf(error);
    const isCancelled = error !== undefined && options.signal?.aborted;
    // Other errors are of calls that were not sent.
    if (observer === undefined || (error !== undefined && failure === undefined && !isCancelled)) {
      return;
    }
    const [, service = "", method = ""] = path.split("/");
    const attempt: ObservedAttempt = {
      service,
      method,
      attempt: this.#number,
      durationMs: performance.now() - this.#begin,
      code: isCancelled ? "CANCELLED" : (failure?.code ?? "OK"),
      reason: failure?.reason,
      server: failure?.neverSent ? undefined : options.server?.name,
    };
    void Promise.resolve(attempt).then(observer).catch(warn);
  }
}

/** An observer that throws fails no call. */
function warn(error: unknown): void {
  const options = { type: "PolynymWarning", detail: inspect(error) };
  process.emitWarning("an observer has failed", options);
}
