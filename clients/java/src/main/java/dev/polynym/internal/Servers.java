package dev.polynym.internal;

import io.grpc.Deadline;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** The servers of a client: calls take turns among those that are connected. */
public final class Servers {
  /** The time after which a server that is away, or an address of it, is tried again. */
  private static final Duration REVIVE_EVERY = Duration.ofSeconds(1);

  private final List<ServerConnection> all;
  private final AtomicInteger turn = new AtomicInteger();

  /** Servers in the order of their first turns. */
  public Servers(List<ServerConnection> all) {
    this.all = List.copyOf(all);
  }

  /**
   * The server of the next attempt, other than the one that failed, if there is another. Null if
   * there are several and none is connected: nobody knows which one will be first.
   */
  @Nullable ServerConnection pick(@Nullable ServerConnection failed) {
    all.forEach(server -> server.revive(REVIVE_EVERY));
    if (all.size() == 1) {
      return all.get(0);
    }
    List<ServerConnection> connected = all.stream().filter(ServerConnection::isConnected).toList();
    if (connected.isEmpty()) {
      return null;
    }
    ServerConnection next = next(connected);
    return next == failed ? next(connected) : next;
  }

  private ServerConnection next(List<ServerConnection> servers) {
    return servers.get(Math.floorMod(turn.getAndIncrement(), servers.size()));
  }

  /** Any server, connected or not. */
  ServerConnection any() {
    return next(all);
  }

  /** The servers, each as {@code HOST:PORT}. */
  List<String> names() {
    return all.stream().map(server -> server.address().replaceFirst("^https?://", "")).toList();
  }

  /** Whether a call would be sent at once. */
  public boolean isConnected() {
    return all.stream().anyMatch(ServerConnection::isConnected);
  }

  /** Waits until a server is connected or all have refused it, and returns whether that is so. */
  public boolean connect(Deadline deadline) {
    while (!isConnected() && all.stream().anyMatch(ServerConnection::isConnecting)) {
      if (deadline.isExpired()) {
        return false;
      }
      try {
        TimeUnit.MILLISECONDS.sleep(2);
      } catch (InterruptedException interrupt) {
        Thread.currentThread().interrupt();
        return false;
      }
    }
    return true;
  }

  /** Lets all servers without a connection connect now, unless that was so a short time ago. */
  void revive(Duration pause) {
    all.forEach(server -> server.revive(pause));
  }

  /** The next call of each server opens a new connection. */
  public void replace() {
    all.forEach(ServerConnection::replace);
  }

  /** Ends all connections, and the calls that are left. */
  void close() {
    all.forEach(server -> server.channel().shutdownNow());
  }
}
