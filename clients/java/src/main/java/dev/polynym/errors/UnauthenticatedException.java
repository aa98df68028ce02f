package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** UNAUTHENTICATED: the call has no valid token or certificate. */
public final class UnauthenticatedException extends PolynymException {
  private static final long serialVersionUID = 1;

  UnauthenticatedException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
