package dev.polynym;

import dev.polynym.errors.PolynymException;
import dev.polynym.errors.Reasons;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Found;
import dev.polynym.v1.BatchResolveIdentitiesResponse;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.ResolveIdentityResponse;
import io.grpc.Status;

/** The limits of a call for several identifiers, and the results of its items. */
final class Batches {
  private static final int MAX_BYTES = 900 * 1024;

  /** The bytes of an item beside its identifier: tag and length. */
  private static final int ITEM_OVERHEAD = 8;

  private volatile int maxItems = 1_000;

  /** The number of identifiers of a call. */
  int maxItems() {
    return maxItems;
  }

  /** Whether a call may have so many bytes of identifiers. */
  static boolean fits(int bytes) {
    return bytes <= MAX_BYTES;
  }

  /** The bytes of an identifier in a call. */
  static int size(Identifier identifier) {
    return identifier.getSerializedSize() + ITEM_OVERHEAD;
  }

  /**
   * Whether a call failed because the server accepts fewer identifiers than it had. Later calls
   * have no more than that.
   */
  boolean isTooLarge(PolynymException error, int items) {
    if (!error.reason().equals(Reasons.BATCH_TOO_LARGE)) {
      return false;
    }
    String limit = error.metadata().getOrDefault("limit", "");
    int most = limit.matches("[1-9]\\d{0,8}") ? Integer.parseInt(limit) : 1;
    if (most >= items) {
      return false;
    }
    maxItems = most;
    return true;
  }

  /** Fails unless there is a result for each item. */
  static void check(BatchResolveIdentitiesResponse response, int items) {
    if (response.getResultsCount() != items) {
      Status wrong =
          Status.INTERNAL.withDescription("the answer has another number of results than asked");
      throw PolynymException.of(wrong, null, "");
    }
  }

  /** Whether an item found no room beside the others, or in any batch. */
  static boolean isUnanswered(PolynymException error) {
    return error.reason().equals(Reasons.ANSWER_TOO_LARGE) || isTooLargeForAny(error);
  }

  /** Whether only a call of its own can answer the item at this position. */
  static boolean goesAlone(PolynymException error, int position) {
    return position == 0 || isTooLargeForAny(error);
  }

  private static boolean isTooLargeForAny(PolynymException error) {
    return error.reason().equals(Reasons.USER_TOO_LARGE);
  }

  static ResolveIdentityResponse single(Found found) {
    return ResolveIdentityResponse.newBuilder()
        .setUser(found.getUser())
        .setIdentity(found.getIdentity())
        .build();
  }

  static Found found(ResolveIdentityResponse single) {
    return Found.newBuilder().setUser(single.getUser()).setIdentity(single.getIdentity()).build();
  }
}
