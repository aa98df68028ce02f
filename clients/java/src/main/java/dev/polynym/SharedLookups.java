package dev.polynym;

import dev.polynym.LookupGroup.Flight;
import dev.polynym.errors.PolynymException;
import dev.polynym.internal.CallFuture;
import dev.polynym.internal.RetryPolicy;
import dev.polynym.internal.Rules;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Result;
import dev.polynym.v1.BatchResolveIdentitiesResponse;
import dev.polynym.v1.DirectoryServiceGrpc;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.ResolveIdentityRequest;
import dev.polynym.v1.ResolveIdentityResponse;
import io.grpc.CallOptions;
import io.grpc.Context;
import io.grpc.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Lets concurrent look-ups with equal options share calls. A look-up goes at once, alone, if few
 * calls are under way. Otherwise it waits, and goes with all others that wait when one of these
 * returns. No timer delays a look-up.
 */
final class SharedLookups {
  private static final CallOptions SHARED = CallOptions.DEFAULT.withOption(Rules.SHARED, true);

  private final Rules rules;
  private final Batches batches;
  private final long stalledAfter;
  private final LoneLookups lone;
  private final Map<ResolveIdentityRequest, LookupGroup> groups = new HashMap<>();

  /** A call that takes longer than {@code stalledAfter} holds up no others. */
  SharedLookups(Rules rules, Batches batches, Duration stalledAfter) {
    this.rules = rules;
    this.stalledAfter = stalledAfter.toNanos();
    this.batches = batches;
    this.lone = new LoneLookups(rules);
  }

  /** Resolves by a call of this thread, or by one that others make. */
  ResolveIdentityResponse resolve(
      Identifier identifier, ResolveOptions options, Supplier<ResolveIdentityResponse> alone) {
    Flight flight = begin(options);
    if (flight == null) {
      return CallFuture.await(join(identifier, options));
    }
    try {
      return alone.get();
    } finally {
      end(options, flight);
    }
  }

  /** Resolves by a call of its own, or by one with others. */
  CompletableFuture<ResolveIdentityResponse> resolveAsync(
      Identifier identifier,
      ResolveOptions options,
      Supplier<CallFuture<ResolveIdentityResponse>> alone) {
    Flight flight = begin(options);
    if (flight == null) {
      return join(identifier, options);
    }
    CallFuture<ResolveIdentityResponse> call = alone.get();
    call.whenComplete((answer, failure) -> end(options, flight));
    return call;
  }

  /** Counts a call of one look-up. Null if it has to wait. */
  private synchronized @Nullable Flight begin(ResolveOptions options) {
    LookupGroup group = group(options);
    return group.hasRoom() ? group.begin(new Flight()) : null;
  }

  private LookupGroup group(ResolveOptions options) {
    return groups.computeIfAbsent(options.shared(), key -> new LookupGroup());
  }

  private void end(ResolveOptions options, Flight flight) {
    List<SharedCall> next;
    synchronized (this) {
      LookupGroup group = group(options);
      group.end(flight);
      next = nextCalls(group);
      if (group.isIdle()) {
        groups.remove(options.shared());
      }
    }
    next.forEach(this::send);
  }

  private Lookup join(Identifier identifier, ResolveOptions options) {
    Lookup lookup = new Lookup(this, identifier, options, options.deadline(rules.timeout()));
    followContext(lookup);
    long half = lookup.deadline.timeRemaining(TimeUnit.NANOSECONDS) / 2;
    lookup.setTimer(rules.timers().after(half, () -> leaveSlowCall(lookup)));
    enqueue(List.of(lookup));
    return lookup;
  }

  /** Ends the look-up when the context of its caller ends. */
  private static void followContext(Lookup lookup) {
    Context context = Context.current();
    if (context != Context.ROOT) {
      Context.CancellationListener listener = ended -> lookup.cancel(true);
      context.addListener(listener, Runnable::run);
      lookup.whenComplete((answer, failure) -> context.removeListener(listener));
    }
  }

  private void enqueue(List<Lookup> lookups) {
    if (lookups.isEmpty()) {
      return;
    }
    ResolveOptions options = lookups.get(0).options;
    List<SharedCall> next;
    synchronized (this) {
      LookupGroup group = group(options);
      for (Lookup lookup : lookups) {
        lookup.shared = null;
        if (!lookup.isDone()) {
          group.waiting.add(lookup);
        }
      }
      next = nextCalls(group);
    }
    next.forEach(this::send);
  }

  /** Takes the calls that may begin now. Looks after calls that take too long while others wait. */
  private List<SharedCall> nextCalls(LookupGroup group) {
    List<SharedCall> next = new ArrayList<>(1);
    while (group.hasRoom() && !group.waiting.isEmpty()) {
      next.add(group.begin(new SharedCall(group.take(batches.maxItems()))));
    }
    if (!group.waiting.isEmpty() && !group.hasAlarm) {
      group.hasAlarm = true;
      rules.timers().after(stalledAfter, () -> noteStalled(group));
    }
    return next;
  }

  private void noteStalled(LookupGroup group) {
    List<SharedCall> next;
    synchronized (this) {
      group.hasAlarm = false;
      group.noteStalled(stalledAfter);
      next = nextCalls(group);
    }
    next.forEach(this::send);
  }

  private void send(SharedCall shared) {
    ResolveOptions options = shared.lookups.get(0).options;
    CallOptions callOptions = SHARED.withDeadline(shared.deadline());
    Context caller = Context.ROOT.attach();
    try {
      CallFuture<BatchResolveIdentitiesResponse> call =
          CallFuture.start(
              rules.newCall(DirectoryServiceGrpc.getBatchResolveIdentitiesMethod(), callOptions),
              shared.request());
      shared.begun(call);
      call.whenComplete(
          (answer, failure) -> {
            end(options, shared);
            settle(shared, answer, failure);
          });
    } finally {
      Context.ROOT.detach(caller);
    }
  }

  private void settle(
      SharedCall shared, BatchResolveIdentitiesResponse answer, @Nullable Throwable failure) {
    if (failure == null) {
      take(shared, answer);
      return;
    }
    List<Lookup> present = present(shared);
    PolynymException error = PolynymException.from(failure);
    if (error == null) {
      present.forEach(lookup -> lookup.completeExceptionally(failure));
    } else if (batches.isTooLarge(error, shared.lookups.size())) {
      enqueue(present);
    } else {
      present.forEach(lookup -> retryAlone(lookup, error));
    }
  }

  private void take(SharedCall shared, BatchResolveIdentitiesResponse answer) {
    try {
      Batches.check(answer, shared.lookups.size());
    } catch (PolynymException wrong) {
      present(shared).forEach(lookup -> lookup.completeExceptionally(wrong));
      return;
    }
    List<Lookup> unanswered = new ArrayList<>();
    for (int position = 0; position < shared.lookups.size(); position++) {
      Lookup lookup = shared.lookups.get(position);
      Result item = answer.getResults(position);
      if (item.hasFound()) {
        lookup.complete(Batches.single(item.getFound()));
        continue;
      }
      PolynymException error = PolynymException.of(item.getError());
      if (!isPresent(lookup, shared)) {
        continue;
      }
      if (!Batches.isUnanswered(error)) {
        retryAlone(lookup, error);
      } else if (Batches.goesAlone(error, position)) {
        goAlone(lookup);
      } else {
        unanswered.add(lookup);
      }
    }
    enqueue(unanswered);
  }

  /** The look-up goes alone after a delay if its error allows it: the call was an attempt. */
  private void retryAlone(Lookup lookup, PolynymException error) {
    long delay = rules.retries().delay(error, 1, lookup.deadline);
    boolean over = rules.isUnreachable(error) || !rules.allowsRetry();
    if (over || delay == RetryPolicy.NEVER) {
      lookup.completeExceptionally(error);
    } else if (leave(lookup)) {
      lookup.setTimer(rules.timers().after(delay, () -> lone.add(lookup, error)));
    }
  }

  /** A look-up that has its call for itself stays until its deadline. */
  private void leaveSlowCall(Lookup lookup) {
    if (!hasOwnCall(lookup)) {
      goAlone(lookup);
    }
  }

  private synchronized boolean hasOwnCall(Lookup lookup) {
    SharedCall shared = lookup.shared;
    return shared != null && shared.lookups.size() == 1;
  }

  private void goAlone(Lookup lookup) {
    if (!lookup.isDone() && leave(lookup)) {
      lone.add(lookup, null);
    }
  }

  /** Takes a look-up out of its call, or of those that wait. False if it has left before. */
  boolean leave(Lookup lookup) {
    SharedCall shared;
    synchronized (this) {
      LookupGroup group = groups.get(lookup.options.shared());
      if (group != null && group.waiting.remove(lookup)) {
        return true;
      }
      shared = lookup.shared;
      lookup.shared = null;
    }
    if (shared == null) {
      return false;
    }
    shared.leave();
    return true;
  }

  private synchronized List<Lookup> present(SharedCall shared) {
    return shared.lookups.stream().filter(lookup -> lookup.shared == shared).toList();
  }

  private synchronized boolean isPresent(Lookup lookup, SharedCall shared) {
    return lookup.shared == shared;
  }
}
