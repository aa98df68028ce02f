package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** ABORTED: the user was modified since its etag was read. Read it, and decide again. */
public final class AbortedException extends PolynymException {
  private static final long serialVersionUID = 1;

  AbortedException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
