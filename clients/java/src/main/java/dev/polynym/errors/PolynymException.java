package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The error of a call. Its subclasses stand for the codes that callers act on; other codes, such as
 * INTERNAL, have this class itself.
 *
 * <p>It is a {@link StatusRuntimeException}, so that code written for gRPC handles it, too.
 */
public class PolynymException extends StatusRuntimeException {
  private static final long serialVersionUID = 1;

  /** Serialized by {@link SerializedError}, as all of the error. */
  private final transient ErrorDetails details;

  private final String requestId;

  PolynymException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers);
    this.details = details;
    this.requestId = requestId;
  }

  /**
   * The exception of a failed call.
   *
   * @param status the status of the call, other than OK
   * @param trailers its trailers, which have the details
   * @param requestId the request id of the call; empty if it has none
   * @return the exception of the type of the code
   */
  public static PolynymException of(Status status, @Nullable Metadata trailers, String requestId) {
    return typed(status, trailers, ErrorDetails.of(status, trailers), requestId);
  }

  /**
   * The exception of an item of a batch. Its text and its field are those of a call of its own:
   * {@code identifier} instead of {@code identifiers[7]}.
   *
   * @param error the item's status, other than OK
   * @return the exception of the type of the code
   */
  public static PolynymException of(com.google.rpc.Status error) {
    String message = ErrorDetails.withoutIndex(error.getMessage());
    Status status = Status.fromCodeValue(error.getCode()).withDescription(message);
    return typed(status, null, ErrorDetails.of(error).ofItem(), "");
  }

  /**
   * The typed exception behind one that gRPC made: stubs for futures and observers, and streams,
   * report a {@link StatusRuntimeException} that this one caused.
   *
   * @param failure what a future, an observer or a stream reported
   * @return the typed exception, or null if the failure has another cause
   */
  public static @Nullable PolynymException from(@Nullable Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof PolynymException typed) {
        return typed;
      }
    }
    return null;
  }

  static PolynymException typed(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    return switch (status.getCode()) {
      case NOT_FOUND -> new NotFoundException(status, trailers, details, requestId);
      case ALREADY_EXISTS -> new AlreadyExistsException(status, trailers, details, requestId);
      case INVALID_ARGUMENT -> new InvalidArgumentException(status, trailers, details, requestId);
      case OUT_OF_RANGE -> new OutOfRangeException(status, trailers, details, requestId);
      case PERMISSION_DENIED -> new PermissionDeniedException(status, trailers, details, requestId);
      case UNAUTHENTICATED -> new UnauthenticatedException(status, trailers, details, requestId);
      case FAILED_PRECONDITION ->
          new FailedPreconditionException(status, trailers, details, requestId);
      case ABORTED -> new AbortedException(status, trailers, details, requestId);
      case RESOURCE_EXHAUSTED ->
          new ResourceExhaustedException(status, trailers, details, requestId);
      case UNAVAILABLE -> new UnavailableException(status, trailers, details, requestId);
      case DEADLINE_EXCEEDED -> new DeadlineExceededException(status, trailers, details, requestId);
      default -> new PolynymException(status, trailers, details, requestId);
    };
  }

  /**
   * Returns the same error for a mutation whose outcome is unknown.
   *
   * @return the exception to throw instead
   */
  public OutcomeUnknownException withUnknownOutcome() {
    return new OutcomeUnknownException(getStatus(), getTrailers(), details, requestId);
  }

  /**
   * Returns the gRPC code.
   *
   * @return the code
   */
  public Status.Code code() {
    return getStatus().getCode();
  }

  /**
   * Returns the reason that programs can rely on, such as {@code IDENTITY_NOT_FOUND}.
   *
   * @return the reason; empty if the error is not the server's
   */
  public String reason() {
    return details.reason();
  }

  /**
   * Returns the invalid field of the request.
   *
   * @return its path; empty if no field is to blame
   */
  public String field() {
    return details.field();
  }

  /**
   * Returns the delay after which the server accepts a retry.
   *
   * @return the delay, or null if the server names none
   */
  public @Nullable Duration retryAfter() {
    return details.retryAfter();
  }

  /**
   * Returns further values of the error, such as {@code until} of a held identifier.
   *
   * @return the values by name
   */
  public Map<String, String> metadata() {
    return details.metadata();
  }

  /**
   * Returns the id of the user who owns the identifier, if the caller's role may see it.
   *
   * @return the user's id; empty if the error has none
   */
  public String owner() {
    return metadata().getOrDefault("owner", "");
  }

  /**
   * Returns the request id of the call. A mutation with this id is applied once, however often it
   * is sent.
   *
   * @return the id; empty if the call has none
   */
  public String requestId() {
    return requestId;
  }

  /**
   * Returns the same error with the stack trace of this thread: callers that share a call share its
   * failure.
   *
   * @return the error, which this one has caused
   */
  public PolynymException copy() {
    return SerializedError.of(this).restored(this);
  }

  /**
   * Serializes the error without the fields of gRPC, which cannot be serialized.
   *
   * @return what is serialized instead
   */
  final Object writeReplace() {
    return SerializedError.of(this);
  }

  final ErrorDetails details() {
    return details;
  }
}
