// Callers that wait for their look-ups.
import type { Identifier } from "../gen/polynym/v1/types.js";
import { MAX_DELAY, onAbort } from "../signals.js";
import { type Resolution, sizeOf } from "./lookups.js";

/** A caller that waits for its look-up. */
export class Waiter {
  readonly size: number;
  readonly promise: Promise<Resolution>;
  #state: "queued" | "shared" | "alone" | "settled" = "queued";
  #onLeave: () => void = () => {};
  #resolve!: (resolution: Resolution) => void;
  #reject!: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #unlisten: () => void;

  /** `onHalfTime` is called when half of the time is over, unless it has a call of its own. */
  constructor(
    readonly identifier: Identifier,
    readonly deadline: number,
    signal: AbortSignal | undefined,
    onHalfTime: (waiter: Waiter) => void,
  ) {
    this.size = sizeOf(identifier);
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const halfTime = Math.min((deadline - performance.now()) / 2, MAX_DELAY);
    this.#timer = setTimeout(() => onHalfTime(this), halfTime);
    this.#unlisten = onAbort(signal, () => this.#fail(signal?.reason));
  }

  get isQueued(): boolean {
    return this.#state === "queued";
  }

  /** Whether it waits for the answer to a request with others. */
  get isShared(): boolean {
    return this.#state === "shared";
  }

  /** It has to be sent. */
  queue(): void {
    this.#state = "queued";
    this.#onLeave = () => {};
  }

  /** It is in a request with others. The function is called if it leaves. */
  share(onLeave: () => void): void {
    this.#state = "shared";
    this.#onLeave = onLeave;
  }

  /**
   * It leaves a request with others, and has a call of its own, which the signal ends if its caller
   * leaves.
   */
  goAlone(): AbortSignal {
    const controller = new AbortController();
    clearTimeout(this.#timer);
    this.#onLeave();
    this.#state = "alone";
    this.#onLeave = () => controller.abort();
    return controller.signal;
  }

  resolve(resolution: Resolution): void {
    this.#settle();
    this.#resolve(resolution);
  }

  reject(error: unknown): void {
    this.#settle();
    this.#reject(error);
  }

  #fail(error: unknown): void {
    this.reject(error);
    this.#onLeave();
  }

  #settle(): void {
    this.#state = "settled";
    clearTimeout(this.#timer);
    this.#unlisten();
  }
}

/** A signal that ends a request once all of its callers have left. */
export function shared(waiters: Waiter[]): AbortSignal {
  const controller = new AbortController();
  let present = waiters.length;
  for (const waiter of waiters) {
    waiter.share(() => {
      present--;
      if (present === 0) {
        controller.abort();
      }
    });
  }
  return controller.signal;
}
