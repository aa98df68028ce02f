package dev.polynym.errors;

/** The {@linkplain PolynymException#reason reasons} of errors, as the page of the API has them. */
public final class Reasons {
  /** RESOURCE_EXHAUSTED. */
  public static final String ANSWERS_UNREAD = "ANSWERS_UNREAD";

  /** RESOURCE_EXHAUSTED. */
  public static final String ANSWER_TOO_LARGE = "ANSWER_TOO_LARGE";

  /** INVALID_ARGUMENT. */
  public static final String ATTRIBUTE_INVALID = "ATTRIBUTE_INVALID";

  /** RESOURCE_EXHAUSTED. */
  public static final String ATTRIBUTE_NAMES_FULL = "ATTRIBUTE_NAMES_FULL";

  /** FAILED_PRECONDITION. */
  public static final String BACKUP_UNSUPPORTED = "BACKUP_UNSUPPORTED";

  /** INVALID_ARGUMENT. */
  public static final String BATCH_TOO_LARGE = "BATCH_TOO_LARGE";

  /** ALREADY_EXISTS. */
  public static final String BULK_CHANGE_EXISTS = "BULK_CHANGE_EXISTS";

  /** NOT_FOUND. */
  public static final String BULK_CHANGE_NOT_FOUND = "BULK_CHANGE_NOT_FOUND";

  /** FAILED_PRECONDITION. */
  public static final String BULK_CHANGE_RUNNING = "BULK_CHANGE_RUNNING";

  /** FAILED_PRECONDITION. */
  public static final String BULK_CHANGE_UNDOING = "BULK_CHANGE_UNDOING";

  /** FAILED_PRECONDITION. */
  public static final String CHANGED_SINCE = "CHANGED_SINCE";

  /** UNAVAILABLE. */
  public static final String CLOCK_IN_DOUBT = "CLOCK_IN_DOUBT";

  /** UNIMPLEMENTED. */
  public static final String COMPRESSION_UNSUPPORTED = "COMPRESSION_UNSUPPORTED";

  /** UNKNOWN. */
  public static final String CONTENT_TYPE_WRONG = "CONTENT_TYPE_WRONG";

  /** UNAUTHENTICATED. */
  public static final String CREDENTIAL_INVALID = "CREDENTIAL_INVALID";

  /** DEADLINE_EXCEEDED. */
  public static final String DEADLINE = "DEADLINE";

  /** ALREADY_EXISTS. */
  public static final String DELIVERY_EXISTS = "DELIVERY_EXISTS";

  /** NOT_FOUND. */
  public static final String DELIVERY_NOT_FOUND = "DELIVERY_NOT_FOUND";

  /** RESOURCE_EXHAUSTED. */
  public static final String DISK_FULL = "DISK_FULL";

  /** ABORTED. */
  public static final String ETAG_MISMATCH = "ETAG_MISMATCH";

  /** INVALID_ARGUMENT. */
  public static final String FIELD_INVALID = "FIELD_INVALID";

  /** INVALID_ARGUMENT. */
  public static final String FILTER_INVALID = "FILTER_INVALID";

  /** RESOURCE_EXHAUSTED. */
  public static final String HEADERS_TOO_LARGE = "HEADERS_TOO_LARGE";

  /** OUT_OF_RANGE. */
  public static final String HISTORY_EXPIRED = "HISTORY_EXPIRED";

  /** NOT_FOUND. */
  public static final String HOLD_NOT_FOUND = "HOLD_NOT_FOUND";

  /** PERMISSION_DENIED. */
  public static final String HOST_DENIED = "HOST_DENIED";

  /** INVALID_ARGUMENT. */
  public static final String HOST_INVALID = "HOST_INVALID";

  /** UNKNOWN. */
  public static final String HTTP_METHOD_WRONG = "HTTP_METHOD_WRONG";

  /** INVALID_ARGUMENT. */
  public static final String IDENTIFIER_DUPLICATE = "IDENTIFIER_DUPLICATE";

  /** INVALID_ARGUMENT. */
  public static final String IDENTIFIER_INVALID = "IDENTIFIER_INVALID";

  /** FAILED_PRECONDITION. */
  public static final String IDENTITY_CONFUSABLE = "IDENTITY_CONFUSABLE";

  /** FAILED_PRECONDITION. */
  public static final String IDENTITY_HELD = "IDENTITY_HELD";

  /** NOT_FOUND. */
  public static final String IDENTITY_NOT_FOUND = "IDENTITY_NOT_FOUND";

  /** FAILED_PRECONDITION. */
  public static final String IDENTITY_RESERVED = "IDENTITY_RESERVED";

  /** ALREADY_EXISTS. */
  public static final String IDENTITY_TAKEN = "IDENTITY_TAKEN";

  /** FAILED_PRECONDITION. */
  public static final String INDEX_BUILDING = "INDEX_BUILDING";

  /** INTERNAL. */
  public static final String INTERNAL = "INTERNAL";

  /** FAILED_PRECONDITION. */
  public static final String LAST_IDENTITY = "LAST_IDENTITY";

  /** RESOURCE_EXHAUSTED. */
  public static final String LIMIT_EXCEEDED = "LIMIT_EXCEEDED";

  /** FAILED_PRECONDITION. */
  public static final String LINE_AMBIGUOUS = "LINE_AMBIGUOUS";

  /** FAILED_PRECONDITION. */
  public static final String MERGE_CONFLICT = "MERGE_CONFLICT";

  /** FAILED_PRECONDITION. */
  public static final String MERGE_DAMAGED = "MERGE_DAMAGED";

  /** INVALID_ARGUMENT. */
  public static final String MESSAGE_INVALID = "MESSAGE_INVALID";

  /** RESOURCE_EXHAUSTED. */
  public static final String MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE";

  /** UNIMPLEMENTED. */
  public static final String METHOD_UNKNOWN = "METHOD_UNKNOWN";

  /** NOT_FOUND. */
  public static final String NOTICE_NOT_FOUND = "NOTICE_NOT_FOUND";

  /** FAILED_PRECONDITION. */
  public static final String NOT_MERGED = "NOT_MERGED";

  /** PERMISSION_DENIED. */
  public static final String ORIGIN_DENIED = "ORIGIN_DENIED";

  /** UNKNOWN. */
  public static final String OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN";

  /** RESOURCE_EXHAUSTED. */
  public static final String OVERLOADED = "OVERLOADED";

  /** INVALID_ARGUMENT. */
  public static final String PAGE_TOKEN_INVALID = "PAGE_TOKEN_INVALID";

  /** INVALID_ARGUMENT. */
  public static final String POLICY_INVALID = "POLICY_INVALID";

  /** FAILED_PRECONDITION. */
  public static final String PRIMARY_IDENTITY = "PRIMARY_IDENTITY";

  /** FAILED_PRECONDITION. */
  public static final String PRIMARY_MISSING = "PRIMARY_MISSING";

  /** INVALID_ARGUMENT. */
  public static final String PROTOCOL_VERSION_INVALID = "PROTOCOL_VERSION_INVALID";

  /** RESOURCE_EXHAUSTED. */
  public static final String RATE_LIMITED = "RATE_LIMITED";

  /** ABORTED. */
  public static final String RENORMALIZE_RUNNING = "RENORMALIZE_RUNNING";

  /** INVALID_ARGUMENT. */
  public static final String REQUEST_ID_INVALID = "REQUEST_ID_INVALID";

  /** INVALID_ARGUMENT. */
  public static final String REQUEST_ID_REUSED = "REQUEST_ID_REUSED";

  /** OUT_OF_RANGE. */
  public static final String RESUME_EXPIRED = "RESUME_EXPIRED";

  /** INVALID_ARGUMENT. */
  public static final String RESUME_TOKEN_INVALID = "RESUME_TOKEN_INVALID";

  /** PERMISSION_DENIED. */
  public static final String ROLE_DENIED = "ROLE_DENIED";

  /** UNAVAILABLE. */
  public static final String RULES_CHANGING = "RULES_CHANGING";

  /** UNAVAILABLE. */
  public static final String SERVER_OUTDATED = "SERVER_OUTDATED";

  /** UNIMPLEMENTED. */
  public static final String SERVICE_UNKNOWN = "SERVICE_UNKNOWN";

  /** UNAVAILABLE. */
  public static final String STORE_UNAVAILABLE = "STORE_UNAVAILABLE";

  /** UNAVAILABLE. */
  public static final String STREAM_ENDED = "STREAM_ENDED";

  /** PERMISSION_DENIED. */
  public static final String TENANT_DENIED = "TENANT_DENIED";

  /** ALREADY_EXISTS. */
  public static final String TENANT_EXISTS = "TENANT_EXISTS";

  /** INVALID_ARGUMENT. */
  public static final String TENANT_INVALID = "TENANT_INVALID";

  /** FAILED_PRECONDITION. */
  public static final String TENANT_NOT_EMPTY = "TENANT_NOT_EMPTY";

  /** NOT_FOUND. */
  public static final String TENANT_NOT_FOUND = "TENANT_NOT_FOUND";

  /** INVALID_ARGUMENT. */
  public static final String TIMEOUT_INVALID = "TIMEOUT_INVALID";

  /** RESOURCE_EXHAUSTED. */
  public static final String TOO_MANY_BULK_CHANGES = "TOO_MANY_BULK_CHANGES";

  /** RESOURCE_EXHAUSTED. */
  public static final String TOO_MANY_DELIVERIES = "TOO_MANY_DELIVERIES";

  /** RESOURCE_EXHAUSTED. */
  public static final String TOO_MANY_HELD_USERS = "TOO_MANY_HELD_USERS";

  /** FAILED_PRECONDITION. */
  public static final String UNDO_EXPIRED = "UNDO_EXPIRED";

  /** INVALID_ARGUMENT. */
  public static final String UPDATE_MASK_INVALID = "UPDATE_MASK_INVALID";

  /** OUT_OF_RANGE. */
  public static final String USAGE_EXPIRED = "USAGE_EXPIRED";

  /** FAILED_PRECONDITION. */
  public static final String USER_DELETED = "USER_DELETED";

  /** FAILED_PRECONDITION. */
  public static final String USER_DISABLED = "USER_DISABLED";

  /** ALREADY_EXISTS. */
  public static final String USER_EXISTS = "USER_EXISTS";

  /** INVALID_ARGUMENT. */
  public static final String USER_ID_INVALID = "USER_ID_INVALID";

  /** FAILED_PRECONDITION. */
  public static final String USER_MERGED = "USER_MERGED";

  /** ALREADY_EXISTS. */
  public static final String USER_NOT_DELETED = "USER_NOT_DELETED";

  /** NOT_FOUND. */
  public static final String USER_NOT_FOUND = "USER_NOT_FOUND";

  /** RESOURCE_EXHAUSTED. */
  public static final String USER_TOO_LARGE = "USER_TOO_LARGE";

  /** FAILED_PRECONDITION. */
  public static final String VALUES_NOT_KEPT = "VALUES_NOT_KEPT";

  /** UNAVAILABLE. */
  public static final String WATCH_ENDED = "WATCH_ENDED";

  /** UNIMPLEMENTED. */
  public static final String WATCH_UNSUPPORTED = "WATCH_UNSUPPORTED";

  private Reasons() {}
}
