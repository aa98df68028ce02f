package dev.polynym.internal;

import dev.polynym.errors.PolynymException;
import io.grpc.ClientCall;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** The answer of a unary call, or its typed error. Cancelling it cancels the call. */
public final class CallFuture<RespT> extends CompletableFuture<RespT> {
  private final ClientCall<?, RespT> call;

  private CallFuture(ClientCall<?, RespT> call) {
    this.call = call;
  }

  /** Begins a call. */
  public static <ReqT, RespT> CallFuture<RespT> start(ClientCall<ReqT, RespT> call, ReqT request) {
    CallFuture<RespT> future = new CallFuture<>(call);
    ClientCalls.asyncUnaryCall(call, request, future.new Answer());
    return future;
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
