// Calls that take turns.
import { DeadlineExceededError } from "../errors.js";
import { until } from "../signals.js";

/** Lets so many calls go at once. The others wait. */
export class Turns {
  readonly #waiting = new Set<() => void>();

  constructor(private free: number) {}

  /** Calls the function when it is its turn. */
  async take<T>(call: () => Promise<T>, deadline: number, signal: AbortSignal): Promise<T> {
    if (this.free > 0) {
      this.free--;
    } else {
      await this.#wait(deadline, signal);
    }
    try {
      return await call();
    } finally {
      this.#pass();
    }
  }

  async #wait(deadline: number, signal: AbortSignal): Promise<void> {
    let begin!: () => void;
    const turn = new Promise<void>((resolve) => (begin = resolve));
    this.#waiting.add(begin);
    await until(deadline, [signal], turn);
    if (this.#waiting.delete(begin)) {
      signal.throwIfAborted();
      throw new DeadlineExceededError({
        code: "DEADLINE_EXCEEDED",
        message: "the deadline has passed",
      });
    }
  }

  #pass(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.free++;
    } else {
      this.#waiting.delete(next);
      next();
    }
  }
}
