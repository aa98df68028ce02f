package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** PERMISSION_DENIED: the caller's role or tenants do not allow the call. */
public final class PermissionDeniedException extends PolynymException {
  private static final long serialVersionUID = 1;

  PermissionDeniedException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
