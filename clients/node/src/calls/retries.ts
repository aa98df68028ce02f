// Which failed attempts are repeated, when, and whether the outcome of a change is known.
import {
  type Code,
  type ErrorParts,
  OutcomeUnknownError,
  PolynymError,
  UnreachableError,
  errorOf,
} from "../errors.js";
import type { backoffOf } from "../options.js";
import { Reason } from "../reasons.js";
import type { Server } from "./servers.js";
import type { Failure } from "./status.js";
import type { AttemptOptions } from "./transport.js";

/** Codes that the transport reports for calls that may have reached the server. */
const LOST: ReadonlySet<Code> = new Set<Code>([
  "DATA_LOSS",
  "DEADLINE_EXCEEDED",
  "RESOURCE_EXHAUSTED",
  "UNAVAILABLE",
]);
/** Codes of refusals: the server did nothing, and earlier attempts remain unsettled. */
const NOT_DONE: ReadonlySet<Code> = new Set<Code>([
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "UNAUTHENTICATED",
  "UNAVAILABLE",
]);
/** The server's reasons after which a change may have happened. */
const UNKNOWN_OUTCOME: ReadonlySet<string> = new Set([
  Reason.ANSWERS_UNREAD,
  Reason.DEADLINE,
  Reason.OUTCOME_UNKNOWN,
]);

/** The properties of a call that its retries depend on. */
export interface Call {
  /** The method, for texts. */
  name: string;
  /** Whether it changes something. */
  changes: boolean;
  /** The id that makes another attempt of a change safe. */
  requestId?: string;
}

/** Where and when an attempt was sent. */
type Sent = Pick<AttemptOptions, "server" | "sent">;

/**
 * The tokens of a client: failed attempts use them up, so that a lasting outage has hardly any
 * retries.
 */
export class Budget {
  #tokens = 10;
  /** When a server was last lost. */
  readonly #losses = new WeakMap<Server, number>();

  /** Whether there may be retries. */
  get allows(): boolean {
    return this.#tokens > 5;
  }

  /** An attempt has failed. Those that are lost with one connection count once. */
  failed({ reason }: ErrorParts, { server, sent }: Sent): void {
    if (reason === undefined && server !== undefined) {
      if (sent < (this.#losses.get(server) ?? 0)) {
        return;
      }
      this.#losses.set(server, performance.now());
    }
    this.#tokens = Math.max(this.#tokens - 1, 0);
  }

  /** A server has given an answer that no other attempt would change, such as `NOT_FOUND`. */
  answered(): void {
    this.#tokens = Math.min(this.#tokens + 0.1, 10);
  }
}

/** The rules of a client for all its calls. */
export interface Rules extends ReturnType<typeof backoffOf> {
  retries: number;
  budget: Budget;
  /** The text of the error if no server can be reached. */
  unreachable: string;
}

/** The failed attempts of one call. */
export class Attempts {
  /** Whether the outcome of an attempt is unknown, and no later answer of the server settled it. */
  #unsettled = false;
  #failed: number;
  #unreached = 0;

  constructor(
    private readonly call: Call,
    private readonly rules: Rules,
    failed = 0,
  ) {
    this.#failed = failed;
  }

  /** How many attempts have reached a server and failed in a way that another may mend. */
  get failed(): number {
    return this.#failed;
  }

  /** The number of the attempt, from 1 on. */
  get number(): number {
    return this.#failed + 1;
  }

  /** Whether there may be another attempt after the one under way. */
  get mayRepeat(): boolean {
    return this.#failed < this.rules.retries;
  }

  /** Notes what the end of an attempt tells about the outcome. */
  settle(failure: Failure): void {
    if (isLost(failure)) {
      this.#unsettled = true;
    } else if (failure.reason !== undefined && !NOT_DONE.has(failure.code)) {
      this.#unsettled = false;
    }
  }

  /**
   * Notes a failed attempt. Returns the milliseconds to wait before the next one, or undefined if
   * it was the last.
   */
  delay(failure: Failure, sent: Sent): number | undefined {
    this.settle(failure);
    if (failure.neverSent) {
      return this.rules.waitForReady ? this.#backoff() : undefined;
    }
    if (this.#repeatable(failure) && failure.retryAfterMs === undefined) {
      this.rules.budget.failed(failure, sent);
    } else if (!isTransient(failure) && failure.reason !== undefined) {
      this.rules.budget.answered();
    }
    return this.resume(failure);
  }

  /** As `delay`, for an attempt that is noted already: it was shared with other calls. */
  resume(failure: Failure): number | undefined {
    if (!this.#repeatable(failure)) {
      return undefined;
    }
    this.#failed++;
    if (this.#failed > this.rules.retries || !this.rules.budget.allows) {
      return undefined;
    }
    return failure.retryAfterMs === undefined
      ? Math.random() * 100 * 2 ** this.#failed
      : failure.retryAfterMs * (1 + Math.random() / 5);
  }

  /** The error of the call after its last attempt. */
  error({ neverSent, ...failure }: Failure): PolynymError {
    const message = neverSent ? this.rules.unreachable : failure.message;
    const parts = { ...failure, message, requestId: this.call.requestId };
    if (this.#isUnknown) {
      return this.#unknown(parts);
    }
    return neverSent ? new UnreachableError(parts) : errorOf(parts);
  }

  /** The error of a call that its caller ends, or the end of its client. */
  ended(reason: unknown): unknown {
    const message = reason instanceof PolynymError ? reason.message : "the call was cancelled";
    const { requestId } = this.call;
    return this.#isUnknown
      ? this.#unknown({ code: "CANCELLED", message, requestId, cause: reason })
      : reason;
  }

  get #isUnknown(): boolean {
    return this.call.changes && this.#unsettled;
  }

  #unknown(parts: ErrorParts): OutcomeUnknownError {
    const message = `${this.call.name} may or may not have happened: ${parts.message}`;
    return new OutcomeUnknownError({ ...parts, message });
  }

  /** The wait for a connection: from half to the whole of a time that doubles. */
  #backoff(): number {
    const { firstBackoffMs, maxBackoffMs } = this.rules;
    const longest = Math.min(firstBackoffMs * 2 ** this.#unreached++, maxBackoffMs);
    return longest * (1 - Math.random() / 2);
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
  const exhausted =
    code === "RESOURCE_EXHAUSTED" && reason !== undefined && retryAfterMs !== undefined;
  return code === "UNAVAILABLE" || exhausted;
}

function isLost({ code, reason, neverSent }: Failure): boolean {
  return reason === undefined ? LOST.has(code) && !neverSent : UNKNOWN_OUTCOME.has(reason);
}
