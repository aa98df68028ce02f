package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** DEADLINE_EXCEEDED: the time for the call is over. */
public final class DeadlineExceededException extends PolynymException {
  private static final long serialVersionUID = 1;

  DeadlineExceededException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
