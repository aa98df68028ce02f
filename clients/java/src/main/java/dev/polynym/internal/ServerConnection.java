package dev.polynym.internal;

import dev.polynym.errors.PolynymException;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.time.Duration;

/**
 * A server and the connections to it. They are replaced once they seem dead; calls on the former
 * ones go on.
 */
public final class ServerConnection {
  /** How many calls in a row reach their deadlines without an answer on a dead connection. */
  private static final int MAX_UNANSWERED = 2;

  private final String address;
  private final ManagedChannel channel;
  private int unanswered;
  private long revived = System.nanoTime();

  /** A server by its address, as observers see it. */
  public ServerConnection(String address, ManagedChannel channel) {
    this.address = address;
    this.channel = channel;
  }

  String address() {
    return address;
  }

  ManagedChannel channel() {
    return channel;
  }

  /** Whether a call would be sent at once. */
  boolean isConnected() {
    return channel.getState(true) == ConnectivityState.READY;
  }

  /** Whether the first attempt to connect is still under way. */
  boolean isConnecting() {
    ConnectivityState state = channel.getState(true);
    return state == ConnectivityState.IDLE || state == ConnectivityState.CONNECTING;
  }

  /** Lets addresses without a connection connect now, unless that was so a short time ago. */
  void revive(Duration pause) {
    synchronized (this) {
      long now = System.nanoTime();
      if (now - revived < pause.toNanos()) {
        return;
      }
      revived = now;
    }
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

  /** Notes the failure of an attempt that was sent. Answers of the server have reasons. */
  synchronized void failed(PolynymException error) {
    if (!error.reason().isEmpty()) {
      unanswered = 0;
    } else if (error.code() == Status.Code.DEADLINE_EXCEEDED && ++unanswered >= MAX_UNANSWERED) {
      unanswered = 0;
      replace();
    }
  }
}
