// The package `polynym`.
export {
  Client,
  type GetUserOptions,
  type HistoryOptions,
  type SearchOptions,
  connect,
} from "./client.js";
export {
  AbortedError,
  AlreadyExistsError,
  ClosedError,
  type Code,
  DeadlineExceededError,
  type ErrorParts,
  FailedPreconditionError,
  InternalError,
  InvalidArgumentError,
  NotFoundError,
  OutOfRangeError,
  OutcomeUnknownError,
  PermissionDeniedError,
  PolynymError,
  ResourceExhaustedError,
  UnauthenticatedError,
  UnavailableError,
  UnimplementedError,
} from "./errors.js";
export { eventTypeOf } from "./events.js";
export * from "./gen/index.polynym.v1.js";
export { email, handle, phone, social, url } from "./identifiers.js";
export type { Outcome, Resolution, ResolveOptions } from "./lookups/lookups.js";
export type { CallOptions, ConnectOptions, ObservedAttempt, Observer } from "./options.js";
export { Reason } from "./reasons.js";
export type { Stub } from "./calls/service.js";
export { errorOfStatus } from "./calls/status.js";
export type { GetOrCreateOptions, GotOrCreated, NewUser } from "./users.js";
export { Watch, type WatchOptions, type WatchedEvent } from "./watch.js";
