package dev.polynym.errors;

import io.grpc.Status;

/** CANCELLED: the client is closed. */
public final class ClosedException extends PolynymException {
  private static final long serialVersionUID = 1;

  /** The error of a call on a closed client. */
  public ClosedException() {
    this("");
  }

  /**
   * The error of a call that was open when its client was closed.
   *
   * @param requestId the request id of the call; empty if it has none
   */
  public ClosedException(String requestId) {
    super(
        Status.CANCELLED.withDescription("the client is closed"),
        null,
        ErrorDetails.NONE,
        requestId);
  }
}
