// Errors from the statuses that a server or the transport reports.
import { type ServiceError, status as codes } from "@grpc/grpc-js";
import { type Code, type ErrorParts, PolynymError, errorOf } from "./errors.js";
import { BadRequest, ErrorInfo, RetryInfo } from "./gen/google/rpc/error_details.js";
import { Status } from "./gen/google/rpc/status.js";

/** The error of an item of a batch, such as those of `directory.batchGetUsers`. */
export function errorOfStatus(status: Status): PolynymError {
  return errorOf(partsOfStatus(status));
}

/** The transport's names for lost connections. */
const LOST: ReadonlySet<Code> = new Set<Code>(["CANCELLED", "INTERNAL", "UNKNOWN"]);

/** What a failed attempt of a call reports. Without a reason, the transport made it, and no server. */
export function partsOfFailure(failure: ServiceError): ErrorParts {
  const [details] = failure.metadata?.get("grpc-status-details-bin") ?? [];
  const parts = partsOfStatus({
    ...(details instanceof Buffer ? decodeDetails(details) : { details: [] }),
    code: failure.code,
    message: failure.details || failure.message,
  });
  if (parts.reason !== undefined) {
    return parts;
  }
  return { ...parts, code: LOST.has(parts.code) ? "UNAVAILABLE" : parts.code, cause: failure };
}

function decodeDetails(details: Buffer): Pick<Status, "details"> {
  try {
    return Status.decode(details);
  } catch {
    return { details: [] };
  }
}

/** What a status says. */
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
