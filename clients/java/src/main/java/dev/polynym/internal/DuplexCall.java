package dev.polynym.internal;

import dev.polynym.errors.ClosedException;
import dev.polynym.errors.PolynymException;
import io.grpc.ClientCall;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.Status;

/** A call with a stream of requests: it gets the credential and typed errors, and never waits. */
final class DuplexCall<ReqT, RespT> extends SimpleForwardingClientCall<ReqT, RespT> {
  private final Rules rules;

  DuplexCall(ClientCall<ReqT, RespT> call, Rules rules) {
    super(call);
    this.rules = rules;
  }

  @Override
  public void start(Listener<RespT> listener, Metadata headers) {
    rules.authorize(headers);
    rules.openCalls().begun();
    super.start(new TypedErrors(listener), headers);
  }

  private final class TypedErrors extends SimpleForwardingClientCallListener<RespT> {
    private boolean answered;

    TypedErrors(Listener<RespT> listener) {
      super(listener);
    }

    @Override
    public void onHeaders(Metadata headers) {
      answered = true;
      super.onHeaders(headers);
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      rules.openCalls().ended();
      Status typed = status;
      if (!status.isOk()) {
        PolynymException error = error(status, trailers);
        typed = error.getStatus().withCause(error);
      }
      super.onClose(typed, trailers);
    }

    private PolynymException error(Status status, Metadata trailers) {
      PolynymException error = Failures.of(status, trailers, "", answered);
      boolean ended = rules.isClosed() && error.code() == Status.Code.UNAVAILABLE;
      return ended && error.reason().isEmpty() ? new ClosedException() : error;
    }
  }
}
