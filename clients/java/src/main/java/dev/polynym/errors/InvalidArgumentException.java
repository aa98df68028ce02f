package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** INVALID_ARGUMENT: the request is malformed; {@link #field()} names the field. */
public final class InvalidArgumentException extends PolynymException {
  private static final long serialVersionUID = 1;

  InvalidArgumentException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
