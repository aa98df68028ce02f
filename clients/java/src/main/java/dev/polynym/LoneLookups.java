package dev.polynym;

import dev.polynym.errors.PolynymException;
import dev.polynym.internal.CallFuture;
import dev.polynym.internal.Rules;
import dev.polynym.v1.DirectoryServiceGrpc;
import dev.polynym.v1.ResolveIdentityResponse;
import io.grpc.CallOptions;
import io.grpc.Context;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Look-ups that go alone after a shared call. Few go at once: a failed call brings no flood. */
final class LoneLookups {
  private static final int MAX_UNDER_WAY = 16;

  private final Rules rules;
  private final Deque<Turn> waiting = new ArrayDeque<>();
  private int underWay;

  private record Turn(Lookup lookup, @Nullable PolynymException earlier) {}

  LoneLookups(Rules rules) {
    this.rules = rules;
  }

  /** Resolves once it is its turn. An earlier error was the first attempt. */
  void add(Lookup lookup, @Nullable PolynymException earlier) {
    Turn turn = new Turn(lookup, earlier);
    synchronized (this) {
      if (underWay == MAX_UNDER_WAY) {
        waiting.add(turn);
        limit(turn);
        return;
      }
      underWay++;
    }
    begin(turn);
  }

  /** A look-up that waits for its turn does so until its deadline. */
  private void limit(Turn turn) {
    long left = turn.lookup.deadline.timeRemaining(TimeUnit.NANOSECONDS);
    turn.lookup.setTimer(rules.timers().after(left, () -> expire(turn)));
  }

  private static void expire(Turn turn) {
    Status late = Status.DEADLINE_EXCEEDED.withDescription("the deadline has passed");
    turn.lookup.completeExceptionally(
        turn.earlier == null ? PolynymException.of(late, null, "") : turn.earlier);
  }

  private void begin(Turn turn) {
    Lookup lookup = turn.lookup;
    if (turn.earlier != null && !rules.allowsRetry()) {
      lookup.completeExceptionally(turn.earlier);
    }
    if (lookup.isDone()) {
      rules.timers().execute(this::next);
      return;
    }
    CallOptions options =
        CallOptions.DEFAULT
            .withDeadline(lookup.deadline)
            .withOption(Rules.ATTEMPTS, new AtomicInteger(turn.earlier == null ? 0 : 1));
    Context caller = Context.ROOT.attach();
    try {
      CallFuture<ResolveIdentityResponse> call =
          CallFuture.start(
              rules.newCall(DirectoryServiceGrpc.getResolveIdentityMethod(), options),
              lookup.options.request(lookup.identifier));
      call.whenCompleteAsync((answer, failure) -> next(), rules.timers());
      lookup.follow(call);
    } finally {
      Context.ROOT.detach(caller);
    }
  }

  private void next() {
    Turn turn;
    synchronized (this) {
      turn = waiting.poll();
      if (turn == null) {
        underWay--;
        return;
      }
    }
    begin(turn);
  }
}
