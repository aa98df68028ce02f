package dev.polynym.internal;

import dev.polynym.errors.ClosedException;
import dev.polynym.errors.PolynymException;
import io.grpc.ClientCall;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;

/** A streaming call: it gets the tenant, the credential and typed errors, and no retries. */
final class StreamCall<ReqT, RespT> extends SimpleForwardingClientCall<ReqT, RespT> {
  private final MethodDescriptor<ReqT, RespT> method;
  private final Rules rules;

  StreamCall(
      ClientCall<ReqT, RespT> call, MethodDescriptor<ReqT, RespT> method, Rules rules) {
    super(call);
    this.method = method;
    this.rules = rules;
  }

  @Override
  public void start(Listener<RespT> listener, Metadata headers) {
    rules.authorize(headers);
    rules.openCalls().begun();
    super.start(new TypedErrors(listener), headers);
  }

  @Override
  public void sendMessage(ReqT message) {
    boolean isRequest = method.getType().clientSendsOneMessage();
    super.sendMessage(isRequest ? rules.completed(message) : message);
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
