package dev.polynym;

import com.google.protobuf.FieldMask;
import com.google.protobuf.Timestamp;
import dev.polynym.v1.BatchResolveIdentitiesRequest;
import dev.polynym.v1.Consistency;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.ResolveIdentityRequest;
import io.grpc.Context;
import io.grpc.Deadline;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * How identifiers are resolved. Options are immutable: each method returns a copy with one more of
 * them, as in {@code ResolveOptions.defaults().showDisabled().fields("user_id")}.
 */
public final class ResolveOptions {
  private static final ResolveOptions DEFAULTS =
      new ResolveOptions(ResolveIdentityRequest.getDefaultInstance(), null);

  private final ResolveIdentityRequest template;
  private final @Nullable Duration timeout;

  private ResolveOptions(ResolveIdentityRequest template, @Nullable Duration timeout) {
    this.template = template;
    this.timeout = timeout;
  }

  /**
   * The options of a look-up without any: the client's tenant and deadline, and the latest data.
   *
   * @return the options
   */
  public static ResolveOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Looks in another tenant than the client's.
   *
   * @param tenant its name
   * @return the options with it
   */
  public ResolveOptions tenant(String tenant) {
    return with(template.toBuilder().setTenant(tenant));
  }

  /**
   * Sets how fresh the answer must be.
   *
   * @param consistency the consistency
   * @return the options with it
   */
  public ResolveOptions consistency(Consistency consistency) {
    return with(template.toBuilder().setConsistency(consistency));
  }

  /**
   * Accepts an answer from the server's cache.
   *
   * @param age the maximum age of the answer
   * @return the options with it
   */
  public ResolveOptions maxStaleness(Duration age) {
    var staleness =
        com.google.protobuf.Duration.newBuilder()
            .setSeconds(age.getSeconds())
            .setNanos(age.getNano());
    return with(template.toBuilder().setMaxStaleness(staleness));
  }

  /**
   * Returns disabled users instead of failing.
   *
   * @return the options with it
   */
  public ResolveOptions showDisabled() {
    return with(template.toBuilder().setShowDisabled(true));
  }

  /**
   * Returns some fields of the user only.
   *
   * @param paths the fields, such as {@code user_id} and {@code identities}
   * @return the options with them
   */
  public ResolveOptions fields(String... paths) {
    FieldMask mask = FieldMask.newBuilder().addAllPaths(List.of(paths)).build();
    return with(template.toBuilder().setReadMask(mask));
  }

  /**
   * Returns the owner of the identifier at a time in the past.
   *
   * @param time the time
   * @return the options with it
   */
  public ResolveOptions asOf(Instant time) {
    Timestamp.Builder timestamp =
        Timestamp.newBuilder().setSeconds(time.getEpochSecond()).setNanos(time.getNano());
    return with(template.toBuilder().setAsOf(timestamp));
  }

  /**
   * Sets the time for each call, with all its attempts.
   *
   * @param timeout the time
   * @return the options with it
   */
  public ResolveOptions timeout(Duration timeout) {
    return new ResolveOptions(template, timeout);
  }

  /** The time for each call, if it is not the client's. */
  @Nullable Duration timeout() {
    return timeout;
  }

  /** The deadline of a call that begins now, on this thread. */
  Deadline deadline(Duration otherwise) {
    Duration time = timeout == null ? otherwise : timeout;
    Deadline own = Deadline.after(time.toNanos(), TimeUnit.NANOSECONDS);
    Deadline inherited = Context.current().getDeadline();
    return inherited == null ? own : own.minimum(inherited);
  }

  /** The options that the look-ups of one call have in common: all but the timeout. */
  ResolveIdentityRequest shared() {
    return template;
  }

  /** Whether look-ups may share a call. */
  boolean isShareable() {
    return template.getConsistency() != Consistency.CONSISTENCY_LINEARIZABLE && !template.hasAsOf();
  }

  /** The request that resolves one identifier. */
  ResolveIdentityRequest request(Identifier identifier) {
    return template.toBuilder().setIdentifier(identifier).build();
  }

  /** A request that resolves many identifiers, still without them. */
  BatchResolveIdentitiesRequest.Builder batch() {
    BatchResolveIdentitiesRequest.Builder batch =
        BatchResolveIdentitiesRequest.newBuilder()
            .setTenant(template.getTenant())
            .setConsistency(template.getConsistency())
            .setShowDisabled(template.getShowDisabled());
    if (template.hasMaxStaleness()) {
      batch.setMaxStaleness(template.getMaxStaleness());
    }
    if (template.hasReadMask()) {
      batch.setReadMask(template.getReadMask());
    }
    if (template.hasAsOf()) {
      batch.setAsOf(template.getAsOf());
    }
    return batch;
  }

  private ResolveOptions with(ResolveIdentityRequest.Builder changed) {
    return new ResolveOptions(changed.build(), timeout);
  }
}
