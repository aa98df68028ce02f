package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/** RESOURCE_EXHAUSTED: a limit is reached; {@link #retryAfter()} has a delay if it passes. */
public final class ResourceExhaustedException extends PolynymException {
  private static final long serialVersionUID = 1;

  ResourceExhaustedException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(status, trailers, details, requestId);
  }
}
