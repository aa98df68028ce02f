// Errors from the statuses that a server or the transport reports.
import { Metadata, type ServiceError, status as codes } from "@grpc/grpc-js";
import { type Code, type ErrorParts, PolynymError, errorOf } from "../errors.js";
import { BadRequest, ErrorInfo, RetryInfo } from "../gen/google/rpc/error_details.js";
import { Status } from "../gen/google/rpc/status.js";
import { Unreachable } from "./servers.js";

/** The error of an item of a batch, such as those of `directory.batchGetUsers`. */
export function errorOfStatus(status: Status): PolynymError {
  return errorOf(partsOfStatus(status));
}

/** The transport's names for lost connections. */
const LOST: ReadonlySet<Code> = new Set<Code>(["CANCELLED", "INTERNAL", "UNAVAILABLE", "UNKNOWN"]);
/** The messages of grpc-js for calls that no server has seen. */
const NEVER_SENT = [
  "No connection established",
  "Name resolution failed",
  "Channel closed before call started",
  "Stream refused by server",
  "Waiting for LB pick",
];

/** A failed attempt. */
export interface Failure extends ErrorParts {
  /** No server has seen the request. */
  neverSent?: boolean;
}

/** The failure of an attempt; undefined for other errors. */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof Unreachable) {
    return unreachable(error.cause);
  }
  return error instanceof Error && "metadata" in error && error.metadata instanceof Metadata
    ? failureOfCall(error as ServiceError)
    : undefined;
}

/**
 * Without a reason, the transport reports the failure, and no server: its words are for the cause
 * alone.
 */
function failureOfCall(error: ServiceError): Failure {
  const [details] = error.metadata?.get("grpc-status-details-bin") ?? [];
  const parts = partsOfStatus({
    ...(details instanceof Buffer ? decodeDetails(details) : { details: [] }),
    code: error.code,
    message: error.details || error.message,
  });
  if (parts.reason !== undefined) {
    return parts;
  }
  if (NEVER_SENT.some((text) => error.details.includes(text))) {
    return unreachable(error);
  }
  const code = LOST.has(parts.code) ? "UNAVAILABLE" : parts.code;
  return {
    ...parts,
    code,
    message: TEXTS[code] ?? `no answer of a server of Polynym: ${code}`,
    cause: error,
  };
}

const TEXTS: Partial<Record<Code, string>> = {
  DEADLINE_EXCEEDED: "the deadline has passed",
  UNAVAILABLE: "the connection was lost before the answer came",
};

function unreachable(cause: unknown): Failure {
  return { code: "UNAVAILABLE", message: "no server can be reached", neverSent: true, cause };
}

function decodeDetails(details: Buffer): Pick<Status, "details"> {
  try {
    return Status.decode(details);
  } catch {
    return { details: [] };
  }
}

/** The parts of the error of a status. */
export function partsOfStatus({ code, message, details }: Status): ErrorParts {
  const parts: ErrorParts = { code: (codes[code] ?? "UNKNOWN") as Code, message };
  for (const { typeUrl, value } of details) {
    if (typeUrl.endsWith("/google.rpc.ErrorInfo")) {
      const info = ErrorInfo.decode(value);
      if (info.domain === "polynym") {
        parts.reason = info.reason;
        parts.metadata = info.metadata;
      }
    } else if (typeUrl.endsWith("/google.rpc.RetryInfo")) {
      const delay = RetryInfo.decode(value).retryDelay;
      parts.retryAfterMs = delay && Number(delay.seconds) * 1_000 + delay.nanos / 1e6;
    } else if (typeUrl.endsWith("/google.rpc.BadRequest")) {
      parts.field = BadRequest.decode(value).fieldViolations[0]?.field;
    }
  }
  return parts;
}
