package dev.polynym;

import dev.polynym.errors.PolynymException;
import io.grpc.ManagedChannel;
import io.grpc.Status;

/** Replaces the connection of a channel once it seems dead. Calls on the former one go on. */
final class Connections {
  /** How many calls in a row reach their deadlines without an answer on a dead connection. */
  private static final int MAX_UNANSWERED = 2;

  private final ManagedChannel channel;
  private int unanswered;

  Connections(ManagedChannel channel) {
    this.channel = channel;
  }

  /** Lets the channel connect at once, where it would wait after a failure. */
  void retry() {
    channel.resetConnectBackoff();
  }

  /** The next call opens a new connection. */
  void replace() {
    channel.enterIdle();
  }

  /** Notes that the server has answered a call. */
  synchronized void answered() {
    unanswered = 0;
  }

  /** Notes the failure of an attempt that may have been sent. Answers of the server have reasons. */
  synchronized void failed(PolynymException error, boolean sent) {
    boolean late = error.getStatus().getCode() == Status.Code.DEADLINE_EXCEEDED;
    if (!error.reason().isEmpty()) {
      unanswered = 0;
    } else if (late && sent && ++unanswered >= MAX_UNANSWERED) {
      unanswered = 0;
      replace();
    }
  }
}
