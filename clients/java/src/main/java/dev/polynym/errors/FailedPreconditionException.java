package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** FAILED_PRECONDITION: the state of the user or the tenant does not allow the call. */
public final class FailedPreconditionException extends PolynymException {
  private static final long serialVersionUID = 1;

  FailedPreconditionException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
