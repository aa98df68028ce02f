package dev.polynym;

import dev.polynym.v1.BatchResolveIdentitiesRequest;
import dev.polynym.v1.BatchResolveIdentitiesResponse;
import io.grpc.Deadline;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A call of several look-ups. */
final class SharedCall extends LookupGroup.Flight {
  final List<Lookup> lookups;
  private int present;
  private @Nullable CompletableFuture<BatchResolveIdentitiesResponse> call;

  SharedCall(List<Lookup> lookups) {
    this.lookups = lookups;
    this.present = lookups.size();
    lookups.forEach(lookup -> lookup.shared = this);
  }

  BatchResolveIdentitiesRequest request() {
    BatchResolveIdentitiesRequest.Builder request = lookups.get(0).options.batch();
    lookups.forEach(lookup -> request.addIdentifiers(lookup.identifier));
    return request.build();
  }

  /** The latest deadline of a look-up. */
  Deadline deadline() {
    Deadline latest = lookups.get(0).deadline;
    for (Lookup lookup : lookups) {
      latest = latest.isBefore(lookup.deadline) ? lookup.deadline : latest;
    }
    return latest;
  }

  synchronized void begun(CompletableFuture<BatchResolveIdentitiesResponse> begun) {
    call = begun;
    cancelIfEmpty();
  }

  /** A look-up leaves. With the last one, the call ends. */
  synchronized void leave() {
    present--;
    cancelIfEmpty();
  }

  private void cancelIfEmpty() {
    if (present == 0 && call != null) {
      call.cancel(true);
    }
  }
}
