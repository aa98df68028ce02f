package dev.polynym.internal;

/**
 * Limits retries while most attempts fail, as gRPC's A6: a failed attempt takes a token, an answer
 * gives a tenth of one, and no attempt is repeated while less than half of them are left.
 */
final class RetryBudget {
  private static final int TOKEN = 10;
  private static final int MAX = 10 * TOKEN;

  private int tenths = MAX;

  /** Notes an answer. */
  synchronized void answered() {
    tenths = Math.min(tenths + 1, MAX);
  }

  /** Notes an attempt that failed, and could be repeated. */
  synchronized void failed() {
    tenths = Math.max(tenths - TOKEN, 0);
  }

  /** Whether attempts may be repeated now. */
  synchronized boolean allowsRetry() {
    return tenths > MAX / 2;
  }
}
