package dev.polynym;

import dev.polynym.errors.PolynymException;
import io.grpc.Deadline;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Which errors are retried, and when. An error without a reason was made by the transport. */
record RetryPolicy(int maxAttempts) {
  /** The answer of {@link #delay} for an error that is final. */
  static final long NEVER = -1;

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
  long delay(PolynymException error, int attempt, Deadline deadline) {
    if (attempt >= maxAttempts || !isRetryable(error)) {
      return NEVER;
    }
    long delay = backoff(error, attempt);
    return delay < deadline.timeRemaining(TimeUnit.NANOSECONDS) ? delay : NEVER;
  }

  /** A random delay up to 100 ms · 2^attempt; or the server's delay and up to a fifth more. */
  static long backoff(PolynymException error, int attempt) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    Duration retryAfter = error.retryAfter();
    if (retryAfter != null) {
      double nanos = retryAfter.toMillis() * 1e6;
      return (long) (nanos * (1 + DELAY_JITTER * random.nextDouble()));
    }
    return random.nextLong((BACKOFF_UNIT << Math.min(attempt, MAX_DOUBLINGS)) + 1);
  }

  /** Whether the same call can succeed later. */
  static boolean isRetryable(PolynymException error) {
    if (isTransport(error)) {
      return isConnectionLost(error);
    }
    return switch (error.code()) {
      case UNAVAILABLE -> true;
      case RESOURCE_EXHAUSTED -> error.retryAfter() != null;
      case UNKNOWN -> error.reason().equals("OUTCOME_UNKNOWN");
      default -> false;
    };
  }

  /** Whether the transport failed before the server's answer was there. */
  static boolean isConnectionLost(PolynymException error) {
    return isTransport(error) && CONNECTION_LOST.contains(error.code());
  }

  /** Whether the attempt may have happened: its answer was lost, or did not say. */
  static boolean isLost(PolynymException error) {
    if (isTransport(error)) {
      return !PROXY_ANSWERS.contains(error.code());
    }
    return error.code() == Code.DEADLINE_EXCEEDED
        || error.reason().equals("OUTCOME_UNKNOWN")
        || error.reason().equals("ANSWERS_UNREAD");
  }

  /** Whether the server's answer also says what became of earlier, lost attempts. */
  static boolean settles(PolynymException error) {
    return !isTransport(error) && !isLost(error) && !NOTHING_DONE.contains(error.code());
  }

  private static boolean isTransport(PolynymException error) {
    return error.reason().isEmpty();
  }
}
