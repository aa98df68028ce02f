// Calls that wait for each other.
import { DeadlineExceededError } from "../errors.js";
import { until } from "../signals.js";

/** Lets so many calls of a client go at once. The others wait. */
export class Semaphore {
  readonly #waiting = new Set<() => void>();

  constructor(
    private free: number,
    private readonly closed: AbortSignal,
  ) {}

  /** Calls the function when it is its turn. */
  async run<T>(call: () => Promise<T>, deadline: number, signal: AbortSignal): Promise<T> {
    if (this.free > 0) {
      this.free--;
    } else {
      await this.#wait(deadline, signal);
    }
    try {
      return await call();
    } finally {
      this.#release();
    }
  }

  async #wait(deadline: number, signal: AbortSignal): Promise<void> {
    let begin!: () => void;
    const turn = new Promise<void>((resolve) => (begin = resolve));
    this.#waiting.add(begin);
    await until(deadline, [signal, this.closed], turn);
    if (this.#waiting.delete(begin)) {
      signal.throwIfAborted();
      this.closed.throwIfAborted();
      throw new DeadlineExceededError({
        code: "DEADLINE_EXCEEDED",
        message: "the deadline has passed",
      });
    }
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.free++;
    } else {
      this.#waiting.delete(next);
      next();
    }
  }
}
