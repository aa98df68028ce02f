package dev.polynym.internal;

import dev.polynym.errors.PolynymException;
import io.grpc.Status;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/** Waits for the outcomes of calls that other threads make. */
public final class Waiting {
  private Waiting() {}

  /** The value of a future. An interrupt ends its call. */
  public static <T> T await(CompletableFuture<T> future) {
    try {
      return future.get();
    } catch (InterruptedException interrupt) {
      future.cancel(true);
      Thread.currentThread().interrupt();
      throw cancelled("the thread was interrupted", interrupt);
    } catch (CancellationException left) {
      throw cancelled("the call was cancelled", left);
    } catch (ExecutionException failed) {
      PolynymException error = PolynymException.from(failed);
      throw error == null ? cancelled("the call failed", failed) : error.copy();
    }
  }

  private static PolynymException cancelled(String text, Throwable cause) {
    return PolynymException.of(Status.CANCELLED.withDescription(text).withCause(cause), null, "");
  }
}
