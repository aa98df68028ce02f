// Signals that end calls.
import { setMaxListeners } from "node:events";

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
