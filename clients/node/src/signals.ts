// Signals and times that end calls.
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

/** The longest delay of a timer. */
export const MAX_DELAY = 2 ** 31 - 1;

/** Calls the function if the signal is aborted from now on. Returns what ends that. */
export function onAbort(signal: AbortSignal | undefined, aborted: () => void): () => void {
  if (signal === undefined) {
    return () => {};
  }
  // Any number of calls may share a signal.
  setMaxListeners(0, signal);
  signal.addEventListener("abort", aborted);
  return () => signal.removeEventListener("abort", aborted);
}

/**
 * Waits for a time of `performance.now()`, one of the signals or one of the events, whichever comes
 * first.
 */
export async function until(
  time: number,
  signals: (AbortSignal | undefined)[],
  ...events: Promise<void>[]
): Promise<void> {
  const ended = new AbortController();
  const leave = signals.map((signal) => onAbort(signal, () => ended.abort()));
  const delay = Math.min(time - performance.now(), MAX_DELAY);
  const timer = sleep(delay, undefined, { signal: ended.signal }).catch(() => undefined);
  try {
    if (!signals.some((signal) => signal?.aborted)) {
      await Promise.race([timer, ...events]);
    }
  } finally {
    leave.forEach((end) => end());
    ended.abort();
  }
}
