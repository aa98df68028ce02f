package dev.polynym.errors;

import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/**
 * A mutation that may or may not have happened: its answer was lost, or did not arrive in time.
 * Calling again with the same {@link #requestId()} is safe: the mutation is applied once.
 */
public final class OutcomeUnknownException extends PolynymException {
  private static final long serialVersionUID = 1;

  OutcomeUnknownException(
      Status status, @Nullable Metadata trailers, ErrorDetails details, String requestId) {
    super(explained(status, requestId), trailers, details, requestId);
  }

  private static Status explained(Status status, String requestId) {
    String remedy =
        requestId.isEmpty()
            ? "the call may have succeeded: read before you repeat it"
            : "the call may have succeeded: repeat it with the request id " + requestId;
    String text = status.getDescription();
    return text != null && text.endsWith(remedy) ? status : status.augmentDescription(remedy);
  }
}
