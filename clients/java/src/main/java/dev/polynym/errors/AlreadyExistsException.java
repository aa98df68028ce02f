package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** ALREADY_EXISTS: another user owns the identifier; {@link #owner()} may name it. */
public final class AlreadyExistsException extends PolynymException {
  private static final long serialVersionUID = 1;

  AlreadyExistsException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
