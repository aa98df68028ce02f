package dev.polynym.internal;

import java.time.Duration;

/** Counts the calls that are open, so that a client can close once there are none. */
final class OpenCalls {
  private int count;

  synchronized void begun() {
    count++;
  }

  synchronized void ended() {
    count--;
    notifyAll();
  }

  /** Waits until no call is open, for some time. An interrupt ends the wait. */
  synchronized void await(Duration patience) {
    long end = System.nanoTime() + patience.toNanos();
    try {
      for (long left = patience.toMillis(); count > 0 && left > 0; ) {
        wait(left);
        left = (end - System.nanoTime()) / 1_000_000;
      }
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
    }
  }
}
