// Which failed attempts are repeated, when, and whether the outcome of a change is known.
import { type Code, type ErrorParts, OutcomeUnknownError, type PolynymError, errorOf } from "./errors.js";

/** Codes that the transport reports for calls that may have reached the server. */
const LOST: ReadonlySet<Code> = new Set<Code>(["DATA_LOSS", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"]);
/** Codes of refusals: the server did nothing, and earlier attempts remain unsettled. */
const NOT_DONE: ReadonlySet<Code> = new Set<Code>([
  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "UNAVAILABLE",
]);
/** What grpc-js says of calls for which it had no connection, so that no server saw them. */
const NEVER_SENT = /^(No connection established|Name resolution failed)/;
/** The server's reasons after which a change may have happened. */
const UNKNOWN_OUTCOME: ReadonlySet<string> = new Set(["ANSWERS_UNREAD", "DEADLINE", "OUTCOME_UNKNOWN"]);

/** The properties of a call that its retries depend on. */
export interface Call {
  /** The method, for texts. */
  name: string;
  /** Whether it changes something. */
  changes: boolean;
  /** The id that makes another attempt of a change safe. */
  requestId?: string;
}

/** The failed attempts of one call. */
export class Attempts {
  /** Whether the outcome of an attempt is unknown, and no later answer of the server settled it. */
  #unsettled = false;
  #failed = 0;

  constructor(
    private readonly call: Call,
    private readonly retries: number,
  ) {}

  /** Counts a failed attempt. Returns the milliseconds to wait before the next one, or undefined if it was the last. */
  delay(failure: ErrorParts): number | undefined {
    this.#failed++;
    this.#settle(failure);
    if (this.#failed > this.retries || !this.#repeatable(failure)) {
      return undefined;
    }
    return failure.retryAfterMs === undefined
      ? Math.random() * 100 * 2 ** this.#failed
      : failure.retryAfterMs * (1 + Math.random() / 5);
  }

  /** The error of the call after its last attempt. */
  error(failure: ErrorParts): PolynymError {
    const parts = { ...failure, requestId: this.call.requestId };
    if (!this.call.changes || !this.#unsettled) {
      return errorOf(parts);
    }
    const message = `${this.call.name} may or may not have happened: ${failure.message}`;
    return new OutcomeUnknownError({ ...parts, message });
  }

  #settle(failure: ErrorParts) {
    if (isLost(failure)) {
      this.#unsettled = true;
    } else if (failure.reason !== undefined && !NOT_DONE.has(failure.code)) {
      this.#unsettled = false;
    }
  }

  #repeatable(failure: ErrorParts): boolean {
    if (this.call.changes && this.#unsettled && this.call.requestId === undefined) {
      return false;
    }
    return isTransient(failure) || (this.call.changes && failure.code === "UNKNOWN");
  }
}

/** Whether another attempt may succeed. */
export function isTransient({ code, reason, retryAfterMs }: ErrorParts): boolean {
  const exhausted = code === "RESOURCE_EXHAUSTED" && reason !== undefined && retryAfterMs !== undefined;
  return code === "UNAVAILABLE" || exhausted;
}

function isLost({ code, reason, message }: ErrorParts): boolean {
  if (reason !== undefined) {
    return UNKNOWN_OUTCOME.has(reason);
  }
  return LOST.has(code) && !NEVER_SENT.test(message);
}
