package dev.polynym.internal;

import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Limits retries while most attempts fail, as gRPC's A6: a failed attempt takes a token, an answer
 * gives a tenth of one, and no attempt is repeated while half of them or fewer are left.
 */
final class RetryBudget {
  private static final int TOKEN = 10;
  private static final int MAX = 10 * TOKEN;

  private int tenths = MAX;
  private final Set<Object> lost = Collections.newSetFromMap(new WeakHashMap<>());

  /** Notes an answer. */
  synchronized void answered() {
    tenths = Math.min(tenths + 1, MAX);
  }

  /**
   * Notes an attempt that failed, and could be repeated. All that were lost with one connection
   * count as one.
   */
  synchronized void failed(@Nullable Object lostConnection) {
    if (lostConnection == null || lost.add(lostConnection)) {
      tenths = Math.max(tenths - TOKEN, 0);
    }
  }

  /** Whether attempts may be repeated now. */
  synchronized boolean allowsRetry() {
    return tenths > MAX / 2;
  }
}
