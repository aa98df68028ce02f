package dev.polynym;

import dev.polynym.errors.PolynymException;
import dev.polynym.v1.BatchResolveIdentitiesRequest;
import dev.polynym.v1.BatchResolveIdentitiesResponse;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Found;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Result;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.ResolveIdentityResponse;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;

/** Resolves any number of identifiers by calls that each stay within the server's limits. */
final class BatchResolver {
  private static final int MAX_ITEMS = 1_000;
  private static final int MAX_BYTES = 900 * 1024;
  /** The bytes of an item beside its identifier: tag and length. */
  private static final int ITEM_OVERHEAD = 8;

  private final PolynymClient client;
  private final ResolveOptions options;
  private final List<Identifier> identifiers;
  private final ResolveResult[] results;
  private final Deque<Integer> pending = new ArrayDeque<>();

  BatchResolver(PolynymClient client, ResolveOptions options, List<Identifier> identifiers) {
    this.client = client;
    this.options = options;
    this.identifiers = identifiers;
    this.results = new ResolveResult[identifiers.size()];
    for (int index = 0; index < identifiers.size(); index++) {
      pending.add(index);
    }
  }

  /** Returns a result for each identifier, in their order. */
  List<ResolveResult> resolve() {
    while (!pending.isEmpty()) {
      resolveSome(nextBatch());
    }
    return Arrays.asList(results);
  }

  private List<Integer> nextBatch() {
    List<Integer> batch = new ArrayList<>();
    int bytes = 0;
    while (!pending.isEmpty() && batch.size() < MAX_ITEMS) {
      bytes += identifiers.get(pending.peek()).getSerializedSize() + ITEM_OVERHEAD;
      if (bytes > MAX_BYTES && !batch.isEmpty()) {
        break;
      }
      batch.add(pending.remove());
    }
    return batch;
  }

  private void resolveSome(List<Integer> batch) {
    BatchResolveIdentitiesRequest.Builder request = options.batch();
    batch.forEach(index -> request.addIdentifiers(identifiers.get(index)));
    BatchResolveIdentitiesResponse response =
        client.directory(options).batchResolveIdentities(request.build());

    List<Integer> unanswered = new ArrayList<>();
    for (int position = 0; position < batch.size(); position++) {
      int index = batch.get(position);
      Result result = response.getResults(position);
      if (result.hasFound()) {
        results[index] = new ResolveResult(result.getFound(), null);
        continue;
      }
      PolynymException error = PolynymException.of(result.getError());
      boolean alone = position == 0 || error.reason().equals("USER_TOO_LARGE");
      if (!isTooLarge(error)) {
        results[index] = new ResolveResult(null, error);
      } else if (alone) {
        results[index] = resolveAlone(index);
      } else {
        unanswered.add(index);
      }
    }
    for (int position = unanswered.size() - 1; position >= 0; position--) {
      pending.addFirst(unanswered.get(position));
    }
  }

  private static boolean isTooLarge(PolynymException error) {
    return error.reason().equals("ANSWER_TOO_LARGE") || error.reason().equals("USER_TOO_LARGE");
  }

  private ResolveResult resolveAlone(int index) {
    try {
      ResolveIdentityResponse answer = client.resolve(identifiers.get(index), options);
      Found found =
          Found.newBuilder().setUser(answer.getUser()).setIdentity(answer.getIdentity()).build();
      return new ResolveResult(found, null);
    } catch (PolynymException error) {
      return new ResolveResult(null, error);
    }
  }
}
