// The errors of calls, a class for each code.
import type { status } from "@grpc/grpc-js";

/** The name of a code of gRPC, such as `NOT_FOUND`. */
export type Code = Exclude<keyof typeof status, "OK">;

/** The parts of an error. */
export interface ErrorParts {
  code: Code;
  message: string;
  reason?: string;
  field?: string;
  retryAfterMs?: number;
  metadata?: Readonly<Record<string, string>>;
  requestId?: string;
  cause?: unknown;
}

/** Why a call failed. The base of all errors of calls. */
export class PolynymError extends Error {
  /** The code of gRPC. */
  readonly code: Code;
  /**
   * The reason that programs can rely on, such as `IDENTITY_TAKEN`; absent if the server did not
   * answer.
   */
  declare readonly reason?: string;
  /** The invalid field of the request. */
  declare readonly field?: string;
  /** How long to wait before another attempt, in milliseconds. */
  declare readonly retryAfterMs?: number;
  /** Further values of the server, by name, such as `limit`, `until` and `user_id`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The id of the request, if it changes something. */
  declare readonly requestId?: string;

  constructor({ code, message, metadata = {}, cause, ...optional }: ErrorParts) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.metadata = metadata;
    // Only what there is, so that printed errors are short.
    Object.assign(
      this,
      Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
    );
  }

  /** The user who owns the identifier of an `IDENTITY_TAKEN`, if the caller's role may see it. */
  get owner(): string | undefined {
    return this.metadata.owner;
  }
}

/** Nobody owns the identifier, or the user, hold, notice or tenant does not exist. */
export class NotFoundError extends PolynymError {}
/** Another user owns the identifier. */
export class AlreadyExistsError extends PolynymError {}
/** The request is malformed; see `field`. */
export class InvalidArgumentError extends PolynymError {}
/** The caller's role or tenants do not allow the call. */
export class PermissionDeniedError extends PolynymError {}
/** The call has no valid credential. */
export class UnauthenticatedError extends PolynymError {}
/** The state of the user or the tenant does not allow the call. */
export class FailedPreconditionError extends PolynymError {}
/** The user was modified since the etag was read. */
export class AbortedError extends PolynymError {}
/** The history, a counter or a resume token is too old. */
export class OutOfRangeError extends PolynymError {}
/** The server or the store does not have the call. */
export class UnimplementedError extends PolynymError {}
/** A limit is exceeded. */
export class ResourceExhaustedError extends PolynymError {}
/** The server cannot be reached, or its store cannot. */
export class UnavailableError extends PolynymError {}
/** No server can be reached. Callers see an `UnavailableError`. */
export class UnreachableError extends UnavailableError {
  override name = UnavailableError.name;
}
/** The deadline has passed. */
export class DeadlineExceededError extends PolynymError {}
/** The server failed, or its answer makes no sense. */
export class InternalError extends PolynymError {}
/** The client is closed. Nothing was done. */
export class ClosedError extends PolynymError {
  constructor() {
    super({ code: "CANCELLED", message: "the client is closed" });
  }
}
/**
 * A change may or may not have happened: the answer was lost. The same call with the same
 * `requestId` is safe: it is applied once.
 */
export class OutcomeUnknownError extends PolynymError {}

const CLASSES: Partial<Record<Code, typeof PolynymError>> = {
  NOT_FOUND: NotFoundError,
  ALREADY_EXISTS: AlreadyExistsError,
  INVALID_ARGUMENT: InvalidArgumentError,
  PERMISSION_DENIED: PermissionDeniedError,
  UNAUTHENTICATED: UnauthenticatedError,
  FAILED_PRECONDITION: FailedPreconditionError,
  ABORTED: AbortedError,
  OUT_OF_RANGE: OutOfRangeError,
  UNIMPLEMENTED: UnimplementedError,
  RESOURCE_EXHAUSTED: ResourceExhaustedError,
  UNAVAILABLE: UnavailableError,
  DEADLINE_EXCEEDED: DeadlineExceededError,
  INTERNAL: InternalError,
};

/** The error of the class of its code. */
export function errorOf(parts: ErrorParts): PolynymError {
  return new (CLASSES[parts.code] ?? PolynymError)(parts);
}
