package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** OUT_OF_RANGE: the history, the counters or the events of a watch do not reach back so far. */
public final class OutOfRangeException extends PolynymException {
  private static final long serialVersionUID = 1;

  OutOfRangeException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
