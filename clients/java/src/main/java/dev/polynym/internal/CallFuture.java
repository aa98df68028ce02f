package dev.polynym.internal;

import dev.polynym.errors.PolynymException;
import io.grpc.ClientCall;
import io.grpc.Status;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/** The answer of a unary call, or its typed error. Cancelling it cancels the call. */
public final class CallFuture<RespT> extends CompletableFuture<RespT> {
  private final ClientCall<?, RespT> call;

  private CallFuture(ClientCall<?, RespT> call) {
    this.call = call;
  }

  /** Begins a call. If that throws, the future fails with the exception. */
  public static <ReqT, RespT> CallFuture<RespT> start(ClientCall<ReqT, RespT> call, ReqT request) {
    CallFuture<RespT> future = new CallFuture<>(call);
    try {
      ClientCalls.asyncUnaryCall(call, request, future.new Answer());
    } catch (RuntimeException | Error failed) {
      future.completeExceptionally(failed);
    }
    return future;
  }

  /** The value of a future whose call another thread makes. An interrupt ends the call. */
  public static <T> T await(CompletableFuture<T> future) {
    try {
      return future.get();
    } catch (InterruptedException interrupt) {
      future.cancel(true);
      Thread.currentThread().interrupt();
      throw failure(Status.CANCELLED, "the thread was interrupted", interrupt);
    } catch (CancellationException left) {
      throw failure(Status.CANCELLED, "the call was cancelled", left);
    } catch (ExecutionException failed) {
      PolynymException error = PolynymException.from(failed);
      throw error == null ? failure(Status.UNKNOWN, "the call failed", failed) : error.copy();
    }
  }

  private static PolynymException failure(Status status, String text, Throwable cause) {
    return PolynymException.of(status.withDescription(text).withCause(cause), null, "");
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    boolean cancelled = super.cancel(mayInterruptIfRunning);
    if (cancelled) {
      call.cancel("the call was cancelled", null);
    }
    return cancelled;
  }

  private final class Answer implements StreamObserver<RespT> {
    private @Nullable RespT value;

    @Override
    public void onNext(RespT message) {
      value = message;
    }

    @Override
    public void onError(Throwable failure) {
      PolynymException typed = PolynymException.from(failure);
      completeExceptionally(typed == null ? failure : typed);
    }

    @Override
    public void onCompleted() {
      complete(value);
    }
  }
}
