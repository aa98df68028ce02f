package dev.polynym.errors;

import io.grpc.Status;
import java.io.Serializable;
import org.jspecify.annotations.Nullable;

/** An error as it is serialized: without the fields of gRPC, which cannot be. */
record SerializedError(
    Kind kind,
    int code,
    @Nullable String text,
    ErrorDetails details,
    String requestId,
    StackTraceElement[] trace)
    implements Serializable {

  enum Kind {
    OF_CODE,
    OUTCOME_UNKNOWN,
    CLOSED
  }

  static SerializedError of(PolynymException error) {
    return new SerializedError(
        kind(error),
        error.code().value(),
        error.getStatus().getDescription(),
        error.details(),
        error.requestId(),
        error.getStackTrace());
  }

  private static Kind kind(PolynymException error) {
    if (error instanceof OutcomeUnknownException) {
      return Kind.OUTCOME_UNKNOWN;
    }
    return error instanceof ClosedException ? Kind.CLOSED : Kind.OF_CODE;
  }

  /** The error, with the stack trace of this thread. */
  PolynymException restored(@Nullable Throwable cause) {
    Status status = Status.fromCodeValue(code).withDescription(text).withCause(cause);
    return switch (kind) {
      case OF_CODE -> PolynymException.typed(status, null, details, requestId);
      case OUTCOME_UNKNOWN -> new OutcomeUnknownException(status, null, details, requestId);
      case CLOSED -> new ClosedException(requestId);
    };
  }

  private Object readResolve() {
    PolynymException error = restored(null);
    error.setStackTrace(trace);
    return error;
  }
}
