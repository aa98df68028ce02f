package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** UNAVAILABLE: the server or its store cannot be reached; nothing was written. */
public final class UnavailableException extends PolynymException {
  private static final long serialVersionUID = 1;

  UnavailableException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
