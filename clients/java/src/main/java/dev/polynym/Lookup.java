package dev.polynym;

import dev.polynym.internal.CallFuture;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.ResolveIdentityResponse;
import io.grpc.Deadline;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/** A look-up that shares a call, or has done so. It is complete once its caller has the outcome. */
final class Lookup extends CompletableFuture<ResolveIdentityResponse> {
  final Identifier identifier;
  final ResolveOptions options;
  final Deadline deadline;
  private final SharedLookups owner;

  /** The call that it shares; null while it waits, and once it has left. The owner guards it. */
  @Nullable SharedCall shared;

  private volatile @Nullable Future<?> timer;
  private volatile @Nullable CallFuture<ResolveIdentityResponse> alone;

  Lookup(SharedLookups owner, Identifier identifier, ResolveOptions options, Deadline deadline) {
    this.owner = owner;
    this.identifier = identifier;
    this.options = options;
    this.deadline = deadline;
  }

  /** Sets what happens next without an outcome, instead of what was set before. */
  synchronized void setTimer(Future<?> next) {
    if (timer != null) {
      timer.cancel(false);
    }
    timer = next;
    if (isDone()) {
      next.cancel(false);
    }
  }

  /** Takes the outcome of a call of its own. */
  void follow(CallFuture<ResolveIdentityResponse> call) {
    alone = call;
    if (isCancelled()) {
      call.cancel(true);
    }
    call.whenComplete(
        (answer, failure) -> {
          if (failure == null) {
            complete(answer);
          } else {
            completeExceptionally(failure);
          }
        });
  }

  @Override
  public boolean complete(ResolveIdentityResponse answer) {
    return stopped(super.complete(answer));
  }

  @Override
  public boolean completeExceptionally(Throwable failure) {
    return stopped(super.completeExceptionally(failure));
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    boolean cancelled = stopped(super.cancel(mayInterruptIfRunning));
    if (cancelled) {
      owner.leave(this);
      CallFuture<ResolveIdentityResponse> call = alone;
      if (call != null) {
        call.cancel(mayInterruptIfRunning);
      }
    }
    return cancelled;
  }

  private boolean stopped(boolean now) {
    Future<?> current = timer;
    if (now && current != null) {
      current.cancel(false);
    }
    return now;
  }
}
