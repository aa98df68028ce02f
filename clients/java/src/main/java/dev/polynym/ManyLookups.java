package dev.polynym;

import dev.polynym.errors.PolynymException;
import dev.polynym.internal.RetryPolicy;
import dev.polynym.internal.Rules;
import dev.polynym.v1.BatchResolveIdentitiesRequest;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Result;
import dev.polynym.v1.BatchResolveIdentitiesResponse;
import dev.polynym.v1.DirectoryServiceGrpc.DirectoryServiceBlockingStub;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.ResolveIdentityRequest;
import dev.polynym.v1.ResolveIdentityResponse;
import io.grpc.Deadline;
import io.grpc.Status.Code;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Resolves any number of identifiers by calls that each stay within the server's limits. */
final class ManyLookups {
  /** After a failure with one of these, or if no server is there, no other call would succeed. */
  private static final Set<Code> FINAL =
      EnumSet.of(
          Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.DEADLINE_EXCEEDED, Code.CANCELLED);

  private final PolynymClient client;
  private final Rules rules;
  private final Batches batches;
  private final ResolveOptions options;
  private final List<Identifier> identifiers;
  private final ResolveResult[] results;
  private final int[] attempts;
  private final Deque<Integer> pending = new ArrayDeque<>();

  /** The identifiers that were refused, and the nanoseconds until they are asked for again. */
  private final List<Integer> refused = new ArrayList<>();

  private long pause;

  /** The error after which nothing more is sent. */
  private @Nullable PolynymException end;

  ManyLookups(
      PolynymClient client,
      Rules rules,
      Batches batches,
      ResolveOptions options,
      List<Identifier> identifiers) {
    this.client = client;
    this.rules = rules;
    this.batches = batches;
    this.options = options;
    this.identifiers = identifiers;
    this.results = new ResolveResult[identifiers.size()];
    this.attempts = new int[identifiers.size()];
    for (int index = 0; index < identifiers.size(); index++) {
      pending.add(index);
    }
  }

  /** Returns a result for each identifier, in their order. */
  List<ResolveResult> resolve() {
    while (!pending.isEmpty() && end == null) {
      resolveSome(nextBatch());
      if (pending.isEmpty() && !refused.isEmpty() && end == null) {
        waitForRefused();
      }
    }
    for (int index = 0; index < results.length; index++) {
      if (results[index] == null) {
        results[index] = new ResolveResult(null, end);
      }
    }
    return Arrays.asList(results);
  }

  private List<Integer> nextBatch() {
    List<Integer> batch = new ArrayList<>();
    int bytes = 0;
    while (!pending.isEmpty() && batch.size() < batches.maxItems()) {
      bytes += Batches.size(identifiers.get(pending.peek()));
      if (!batch.isEmpty() && !Batches.fits(bytes)) {
        break;
      }
      batch.add(pending.remove());
    }
    return batch;
  }

  private void resolveSome(List<Integer> batch) {
    BatchResolveIdentitiesRequest.Builder request = options.batch();
    batch.forEach(index -> request.addIdentifiers(identifiers.get(index)));
    Deadline deadline = options.deadline(rules.timeout());
    int earlier = batch.stream().mapToInt(index -> attempts[index]).max().orElse(0);
    AtomicInteger made = new AtomicInteger(earlier);
    try {
      BatchResolveIdentitiesResponse response =
          stub(made).batchResolveIdentities(request.build());
      Batches.check(response, batch.size());
      batch.forEach(index -> attempts[index] += made.get() - earlier);
      take(batch, response.getResultsList(), deadline);
    } catch (PolynymException error) {
      if (batches.isTooLarge(error, batch.size())) {
        batch.forEach(index -> attempts[index] += made.get() - earlier - 1);
        goFirst(batch);
      } else {
        fail(batch, error);
      }
    }
  }

  /** The look-ups, by calls whose attempts are counted on. */
  private DirectoryServiceBlockingStub stub(AtomicInteger made) {
    return client.directory(options).withOption(Rules.ATTEMPTS, made);
  }

  private void take(List<Integer> batch, List<Result> items, Deadline deadline) {
    List<Integer> unanswered = new ArrayList<>();
    List<Integer> alone = new ArrayList<>();
    for (int position = 0; position < batch.size(); position++) {
      int index = batch.get(position);
      Result item = items.get(position);
      if (item.hasFound()) {
        results[index] = new ResolveResult(item.getFound(), null);
        continue;
      }
      PolynymException error = PolynymException.of(item.getError());
      if (!Batches.isUnanswered(error)) {
        takeError(index, error, deadline);
        continue;
      }
      attempts[index]--;
      (Batches.goesAlone(error, position) ? alone : unanswered).add(index);
    }
    goFirst(unanswered);
    alone.forEach(this::resolveAlone);
  }

  /** Notes the error of an item. One that was only refused is asked for again. */
  private void takeError(int index, PolynymException error, Deadline deadline) {
    long delay = rules.retries().delay(error, attempts[index], deadline);
    if (delay == RetryPolicy.NEVER || !rules.allowsRetry()) {
      results[index] = new ResolveResult(null, error);
    } else {
      refused.add(index);
      pause = Math.max(pause, delay);
    }
  }

  private void waitForRefused() {
    pending.addAll(refused);
    refused.clear();
    try {
      TimeUnit.NANOSECONDS.sleep(pause);
      pause = 0;
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      Status cancelled = Status.CANCELLED.withDescription("the thread was interrupted");
      end = PolynymException.of(cancelled.withCause(interrupt), null, "");
    }
  }

  private void goFirst(List<Integer> batch) {
    for (int position = batch.size() - 1; position >= 0; position--) {
      pending.addFirst(batch.get(position));
    }
  }

  private void fail(List<Integer> batch, PolynymException error) {
    batch.forEach(index -> results[index] = new ResolveResult(null, error));
    if (FINAL.contains(error.code()) || rules.isUnreachable(error)) {
      end = error;
    }
  }

  private void resolveAlone(int index) {
    if (end != null) {
      return;
    }
    try {
      ResolveIdentityRequest request = options.request(identifiers.get(index));
      AtomicInteger made = new AtomicInteger(attempts[index]);
      ResolveIdentityResponse answer = stub(made).resolveIdentity(request);
      results[index] = new ResolveResult(Batches.found(answer), null);
    } catch (PolynymException error) {
      fail(List.of(index), error);
    }
  }
}
