package dev.polynym.internal;

import java.lang.ref.WeakReference;
import org.jspecify.annotations.Nullable;

/**
 * Limits retries while most attempts fail, as gRPC's A6: a failed attempt takes a token, an answer
 * gives a tenth of one, and no attempt is repeated while less than half of them are left.
 */
final class RetryBudget {
  private static final int TOKEN = 10;
  private static final int MAX = 10 * TOKEN;

  private int tenths = MAX;
  private WeakReference<Object> lost = new WeakReference<>(null);

  /** Notes an answer. */
  synchronized void answered() {
    tenths = Math.min(tenths + 1, MAX);
  }

  /**
   * Notes an attempt that failed, and could be repeated. All that were lost with one connection
   * count as one.
   */
  synchronized void failed(@Nullable Object lostConnection) {
    if (lostConnection == null || lost.get() != lostConnection) {
      lost = new WeakReference<>(lostConnection);
      tenths = Math.max(tenths - TOKEN, 0);
    }
  }

  /** Whether attempts may be repeated now. */
  synchronized boolean allowsRetry() {
    return tenths > MAX / 2;
  }
}
