package dev.polynym.internal;

import dev.polynym.errors.PolynymException;
import io.grpc.Deadline;
import io.grpc.Status;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** The attempts of a call: how many there were, what they left, and when the next one follows. */
final class Attempts {
  private final Rules rules;
  private final Deadline deadline;

  /** Those that reached a server, of earlier calls of the same item, too; and the others. */
  private final AtomicInteger made;

  private int misses;
  private boolean outcomeUnknown;

  Attempts(Rules rules, Deadline deadline, @Nullable AtomicInteger made) {
    this.rules = rules;
    this.deadline = deadline;
    this.made = made == null ? new AtomicInteger() : made;
  }

  /** Notes an attempt. Returns its number: one that reached no server has that of the next one. */
  int note(boolean reached) {
    if (reached) {
      return made.incrementAndGet();
    }
    misses++;
    return made.get() + 1;
  }

  /** Notes an error, and whether the attempt may have happened nevertheless. */
  void noteFailure(PolynymException error, boolean lost) {
    outcomeUnknown = lost || (outcomeUnknown && !RetryPolicy.settles(error));
  }

  /** Whether the call may have changed something. */
  boolean isOutcomeUnknown() {
    return outcomeUnknown;
  }

  /** The time until the attempt after one that failed at a server, or with a connection to it. */
  long delay(PolynymException error, boolean repeatable, @Nullable Object lostWith) {
    RetryBudget budget = rules.budget();
    if (!RetryPolicy.isRetryable(error)) {
      if (!error.reason().isEmpty()) {
        budget.answered();
      }
      return RetryPolicy.NEVER;
    }
    if (error.retryAfter() == null) {
      budget.failed(lostWith);
    }
    if (!repeatable || !budget.allowsRetry()) {
      return RetryPolicy.NEVER;
    }
    return rules.retries().delay(error, made.get(), deadline);
  }

  /** The time until the attempt after one that reached no server. */
  long patience(PolynymException error) {
    if (error.code() != Status.Code.UNAVAILABLE) {
      return RetryPolicy.NEVER;
    }
    rules.servers().revive(rules.retries().firstWait());
    return rules.retries().patience(misses, deadline);
  }
}
