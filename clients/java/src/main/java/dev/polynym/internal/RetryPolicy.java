package dev.polynym.internal;

import dev.polynym.errors.ClosedException;
import dev.polynym.errors.PolynymException;
import dev.polynym.errors.Reasons;
import io.grpc.Deadline;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Which errors are retried, and when. An error without a reason was made by the transport.
 *
 * @param maxAttempts how often a call may reach a server
 * @param waitForReady whether a call waits for a server that cannot be reached
 * @param firstWait the wait after the first attempt that reached no server
 * @param longestWait the limit of these waits, which double
 */
public record RetryPolicy(
    int maxAttempts, boolean waitForReady, Duration firstWait, Duration longestWait) {
  /** The answer of {@link #delay} for an error that is final. */
  public static final long NEVER = -1;

  /** The time before its deadline in which a call no longer waits for a server. */
  private static final long LEAST_PATIENCE = TimeUnit.MILLISECONDS.toNanos(20);

  private static final long BACKOFF_UNIT = TimeUnit.MILLISECONDS.toNanos(100);
  private static final int MAX_DOUBLINGS = 7;
  private static final double DELAY_JITTER = 0.2;
  private static final Set<Code> CONNECTION_LOST =
      EnumSet.of(Code.UNAVAILABLE, Code.CANCELLED, Code.INTERNAL, Code.UNKNOWN);
  private static final Set<Code> NOTHING_DONE =
      EnumSet.of(
          Code.UNAVAILABLE,
          Code.RESOURCE_EXHAUSTED,
          Code.UNAUTHENTICATED,
          Code.PERMISSION_DENIED);
  private static final Set<Code> PROXY_ANSWERS =
      EnumSet.of(Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.UNIMPLEMENTED);

  /** The nanoseconds until the attempt after number {@code attempt}, or {@link #NEVER}. */
  public long delay(PolynymException error, int attempt, Deadline deadline) {
    if (attempt >= maxAttempts || !isRetryable(error)) {
      return NEVER;
    }
    return within(deadline, backoff(error, attempt));
  }

  /** The nanoseconds after {@code tries} attempts that reached no server, or {@link #NEVER}. */
  long patience(int tries, Deadline deadline) {
    if (!waitForReady) {
      return NEVER;
    }
    double doubled = firstWait.toNanos() * Math.pow(2, tries - 1);
    double wait = Math.min(doubled, longestWait.toNanos());
    double jitter = (1 + ThreadLocalRandom.current().nextDouble()) / 2;
    // At most half of the time that is left: a server that is back by the deadline is found.
    long left = deadline.timeRemaining(TimeUnit.NANOSECONDS);
    return left < LEAST_PATIENCE ? NEVER : Math.min((long) (wait * jitter), left / 2);
  }

  private static long within(Deadline deadline, long delay) {
    return delay < deadline.timeRemaining(TimeUnit.NANOSECONDS) ? delay : NEVER;
  }

  /** A random delay up to 100 ms · 2^attempt; or the server's delay and up to a fifth more. */
  public static long backoff(PolynymException error, int attempt) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    Duration retryAfter = error.retryAfter();
    if (retryAfter != null) {
      double nanos = retryAfter.toMillis() * 1e6;
      return (long) (nanos * (1 + DELAY_JITTER * random.nextDouble()));
    }
    return random.nextLong((BACKOFF_UNIT << Math.min(attempt, MAX_DOUBLINGS)) + 1);
  }

  /** Whether the same call can succeed later. */
  public static boolean isRetryable(PolynymException error) {
    if (isTransport(error)) {
      return isConnectionLost(error);
    }
    return switch (error.code()) {
      case UNAVAILABLE -> true;
      case RESOURCE_EXHAUSTED -> error.retryAfter() != null;
      case UNKNOWN -> error.reason().equals(Reasons.OUTCOME_UNKNOWN);
      default -> false;
    };
  }

  /** Whether the transport failed before the server's answer was there. */
  static boolean isConnectionLost(PolynymException error) {
    return isTransport(error)
        && CONNECTION_LOST.contains(error.code())
        && !(error instanceof ClosedException);
  }

  /** Whether the attempt may have happened: its answer was lost, or did not say. */
  static boolean isLost(PolynymException error) {
    if (isTransport(error)) {
      return !PROXY_ANSWERS.contains(error.code());
    }
    return error.code() == Code.DEADLINE_EXCEEDED
        || error.reason().equals(Reasons.OUTCOME_UNKNOWN)
        || error.reason().equals(Reasons.ANSWERS_UNREAD);
  }

  /** Whether the server's answer also says what became of earlier, lost attempts. */
  static boolean settles(PolynymException error) {
    return !isTransport(error) && !isLost(error) && !NOTHING_DONE.contains(error.code());
  }

  private static boolean isTransport(PolynymException error) {
    return error.reason().isEmpty();
  }
}
