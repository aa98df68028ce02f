package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** NOT_FOUND: nobody owns the identifier, or the user, tenant or notice does not exist. */
public final class NotFoundException extends PolynymException {
  private static final long serialVersionUID = 1;

  NotFoundException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
