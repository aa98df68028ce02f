//! The reasons of errors, which programs can rely on: `Error::reason` is one of them, or empty if
//! the server did not answer.

/// An identifier breaks a rule of its kind, or is missing.
pub const IDENTIFIER_INVALID: &str = "IDENTIFIER_INVALID";
/// One identifier occurs twice in a new user.
pub const IDENTIFIER_DUPLICATE: &str = "IDENTIFIER_DUPLICATE";
/// The id of a user is not a UUID.
pub const USER_ID_INVALID: &str = "USER_ID_INVALID";
/// The request id is not a UUID.
pub const REQUEST_ID_INVALID: &str = "REQUEST_ID_INVALID";
/// The tenant is malformed.
pub const TENANT_INVALID: &str = "TENANT_INVALID";
/// An attribute is malformed.
pub const ATTRIBUTE_INVALID: &str = "ATTRIBUTE_INVALID";
/// The mask of an update is malformed.
pub const UPDATE_MASK_INVALID: &str = "UPDATE_MASK_INVALID";
/// The named field is malformed.
pub const FIELD_INVALID: &str = "FIELD_INVALID";
/// A policy is malformed.
pub const POLICY_INVALID: &str = "POLICY_INVALID";
/// The token of a page is malformed.
pub const PAGE_TOKEN_INVALID: &str = "PAGE_TOKEN_INVALID";
/// The filter breaks a rule of its language, or exceeds a limit.
pub const FILTER_INVALID: &str = "FILTER_INVALID";
/// The history does not reach back to that time.
pub const HISTORY_EXPIRED: &str = "HISTORY_EXPIRED";
/// Counters of this resolution are not kept for so long.
pub const USAGE_EXPIRED: &str = "USAGE_EXPIRED";
/// The events after the `resume_token` were removed.
pub const RESUME_EXPIRED: &str = "RESUME_EXPIRED";
/// The `resume_token` belongs to another watch or store, or was altered.
pub const RESUME_TOKEN_INVALID: &str = "RESUME_TOKEN_INVALID";
/// The watch has lasted an hour, or the server stops.
pub const WATCH_ENDED: &str = "WATCH_ENDED";
/// The server stops before the stream has finished, or the connection of a stream without an end
/// is old.
pub const STREAM_ENDED: &str = "STREAM_ENDED";
/// The store has no change streams (history).
pub const WATCH_UNSUPPORTED: &str = "WATCH_UNSUPPORTED";
/// The index of an attribute of this search is being changed.
pub const INDEX_BUILDING: &str = "INDEX_BUILDING";
/// The store is on MongoDB.
pub const BACKUP_UNSUPPORTED: &str = "BACKUP_UNSUPPORTED";
/// The tenant has 10,000 different names of attributes, and this would be one more.
pub const ATTRIBUTE_NAMES_FULL: &str = "ATTRIBUTE_NAMES_FULL";
/// The body is not one well-formed message.
pub const MESSAGE_INVALID: &str = "MESSAGE_INVALID";
/// `grpc-timeout` or `connect-timeout-ms` is malformed.
pub const TIMEOUT_INVALID: &str = "TIMEOUT_INVALID";
/// Over HTTP: another version of Connect than 1, or lines over HTTP/1.0.
pub const PROTOCOL_VERSION_INVALID: &str = "PROTOCOL_VERSION_INVALID";
/// Over HTTP: not exactly one host.
pub const HOST_INVALID: &str = "HOST_INVALID";
/// Over HTTP: the call needs another method.
pub const HTTP_METHOD_WRONG: &str = "HTTP_METHOD_WRONG";
/// Over HTTP: the call needs another content type.
pub const CONTENT_TYPE_WRONG: &str = "CONTENT_TYPE_WRONG";
/// Over HTTP without credentials: another host than this machine.
pub const HOST_DENIED: &str = "HOST_DENIED";
/// Over HTTP without credentials: a page of another origin.
pub const ORIGIN_DENIED: &str = "ORIGIN_DENIED";
/// Too many items.
pub const BATCH_TOO_LARGE: &str = "BATCH_TOO_LARGE";
/// This `request_id` was used for another request of the same tenant, method and caller.
pub const REQUEST_ID_REUSED: &str = "REQUEST_ID_REUSED";
/// The call has no valid token (access).
pub const CREDENTIAL_INVALID: &str = "CREDENTIAL_INVALID";
/// The method needs a higher role than the caller's.
pub const ROLE_DENIED: &str = "ROLE_DENIED";
/// The tenant is not one of the caller's, whether or not it exists.
pub const TENANT_DENIED: &str = "TENANT_DENIED";
/// Nobody owns the identifier.
pub const IDENTITY_NOT_FOUND: &str = "IDENTITY_NOT_FOUND";
/// The user does not exist, or is purged.
pub const USER_NOT_FOUND: &str = "USER_NOT_FOUND";
/// The inbox does not have the notice: it was deleted, or has expired.
pub const NOTICE_NOT_FOUND: &str = "NOTICE_NOT_FOUND";
/// There is no such bulk change, or it was removed 30 days after its end.
pub const BULK_CHANGE_NOT_FOUND: &str = "BULK_CHANGE_NOT_FOUND";
/// Another bulk change has this id.
pub const BULK_CHANGE_EXISTS: &str = "BULK_CHANGE_EXISTS";
/// The bulk change to resume is being undone.
pub const BULK_CHANGE_UNDOING: &str = "BULK_CHANGE_UNDOING";
/// The operation to undo is a bulk change that runs, or was stopped and still changes its last
/// users.
pub const BULK_CHANGE_RUNNING: &str = "BULK_CHANGE_RUNNING";
/// Four bulk changes are running in the tenant.
pub const TOO_MANY_BULK_CHANGES: &str = "TOO_MANY_BULK_CHANGES";
/// There is no such delivery.
pub const DELIVERY_NOT_FOUND: &str = "DELIVERY_NOT_FOUND";
/// Another delivery has this id.
pub const DELIVERY_EXISTS: &str = "DELIVERY_EXISTS";
/// The tenant has 100 deliveries.
pub const TOO_MANY_DELIVERIES: &str = "TOO_MANY_DELIVERIES";
/// Events of more than 1,000 users would wait in the delivery, or there are more than 100,000
/// events.
pub const TOO_MANY_HELD_USERS: &str = "TOO_MANY_HELD_USERS";
/// The identifier is not held.
pub const HOLD_NOT_FOUND: &str = "HOLD_NOT_FOUND";
/// The tenant does not exist, and calls do not create tenants, or it is being deleted.
pub const TENANT_NOT_FOUND: &str = "TENANT_NOT_FOUND";
/// Another user owns the identifier.
pub const IDENTITY_TAKEN: &str = "IDENTITY_TAKEN";
/// A change outside the operation to undo followed its first change of the user.
pub const CHANGED_SINCE: &str = "CHANGED_SINCE";
/// The history does not have all that the user had before the operation to undo.
pub const VALUES_NOT_KEPT: &str = "VALUES_NOT_KEPT";
/// The identities of a line of an import belong to several users.
pub const LINE_AMBIGUOUS: &str = "LINE_AMBIGUOUS";
/// The id of an imported user belongs to a different user.
pub const USER_EXISTS: &str = "USER_EXISTS";
/// An imported tenant exists with other policies.
pub const TENANT_EXISTS: &str = "TENANT_EXISTS";
/// The user to be restored is not deleted.
pub const USER_NOT_DELETED: &str = "USER_NOT_DELETED";
/// The owner is disabled.
pub const USER_DISABLED: &str = "USER_DISABLED";
/// A change of a deleted user.
pub const USER_DELETED: &str = "USER_DELETED";
/// A change of a user who is part of another.
pub const USER_MERGED: &str = "USER_MERGED";
/// The identifier is held for its former owner.
pub const IDENTITY_HELD: &str = "IDENTITY_HELD";
/// The tenant has users, and `force` is not set.
pub const TENANT_NOT_EMPTY: &str = "TENANT_NOT_EMPTY";
/// The tenant reserves the handle, or one that it looks like.
pub const IDENTITY_RESERVED: &str = "IDENTITY_RESERVED";
/// The handle looks like another one.
pub const IDENTITY_CONFUSABLE: &str = "IDENTITY_CONFUSABLE";
/// The tenant's policy protects the last identity.
pub const LAST_IDENTITY: &str = "LAST_IDENTITY";
/// The tenant's policy protects the primary identity.
pub const PRIMARY_IDENTITY: &str = "PRIMARY_IDENTITY";
/// Under `CONFLICT_POLICY_FAIL`: both users have different values.
pub const MERGE_CONFLICT: &str = "MERGE_CONFLICT";
/// There is no such merge.
pub const NOT_MERGED: &str = "NOT_MERGED";
/// The undo window of the merge is over.
pub const UNDO_EXPIRED: &str = "UNDO_EXPIRED";
/// The primary of an imported user is not there at the end of the import.
pub const PRIMARY_MISSING: &str = "PRIMARY_MISSING";
/// The record of a merge is damaged.
pub const MERGE_DAMAGED: &str = "MERGE_DAMAGED";
/// The user was modified since the etag was read.
pub const ETAG_MISMATCH: &str = "ETAG_MISMATCH";
/// The tenant is being renormalised by another call to this server.
pub const RENORMALIZE_RUNNING: &str = "RENORMALIZE_RUNNING";
/// A user would have too many identities, attributes, values to be found by, bytes, holds or
/// merged users.
pub const LIMIT_EXCEEDED: &str = "LIMIT_EXCEEDED";
/// The request exceeds the limit of its service.
pub const MESSAGE_TOO_LARGE: &str = "MESSAGE_TOO_LARGE";
/// An item did not fit into the response of its batch.
pub const ANSWER_TOO_LARGE: &str = "ANSWER_TOO_LARGE";
/// One user alone exceeds the response of a batch.
pub const USER_TOO_LARGE: &str = "USER_TOO_LARGE";
/// The headers exceed 8 KiB.
pub const HEADERS_TOO_LARGE: &str = "HEADERS_TOO_LARGE";
/// Too many calls are in flight, or too many streams of this kind or on this connection are
/// open.
pub const OVERLOADED: &str = "OVERLOADED";
/// The call needs space on the disk of the embedded store, of which a tenth (at most 8 GiB) is
/// left for users.
pub const DISK_FULL: &str = "DISK_FULL";
/// The caller has exceeded its share of connections, calls or streams, or its rate of calls,
/// misses or bytes of notices.
pub const RATE_LIMITED: &str = "RATE_LIMITED";
/// The connection or its caller has too many unread responses.
pub const ANSWERS_UNREAD: &str = "ANSWERS_UNREAD";
/// The deadline has passed.
pub const DEADLINE: &str = "DEADLINE";
/// The store is unreachable.
pub const STORE_UNAVAILABLE: &str = "STORE_UNAVAILABLE";
/// The store was upgraded, and this server's program does not support its version.
pub const SERVER_OUTDATED: &str = "SERVER_OUTDATED";
/// The identifier's hold is over by one clock and not by another, or a change of
/// `history_retention` has no certain time.
pub const CLOCK_IN_DOUBT: &str = "CLOCK_IN_DOUBT";
/// Identities are being moved to other rules of normalisation.
pub const RULES_CHANGING: &str = "RULES_CHANGING";
/// A mutation may or may not have happened.
pub const OUTCOME_UNKNOWN: &str = "OUTCOME_UNKNOWN";
/// The path names no service.
pub const SERVICE_UNKNOWN: &str = "SERVICE_UNKNOWN";
/// The path names no method.
pub const METHOD_UNKNOWN: &str = "METHOD_UNKNOWN";
/// The message is compressed, and not with gzip.
pub const COMPRESSION_UNSUPPORTED: &str = "COMPRESSION_UNSUPPORTED";
/// A fault of the server, which logs it.
pub const INTERNAL: &str = "INTERNAL";
