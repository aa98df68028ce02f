package dev.polynym;

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
    super.start(new TypedErrors<>(listener), headers);
  }

  @Override
  public void sendMessage(ReqT message) {
    boolean isRequest = method.getType().clientSendsOneMessage();
    super.sendMessage(isRequest ? rules.completed(message) : message);
  }

  private static final class TypedErrors<RespT> extends SimpleForwardingClientCallListener<RespT> {
    TypedErrors(Listener<RespT> listener) {
      super(listener);
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      Status typed = status;
      if (!status.isOk()) {
        typed = status.withCause(PolynymException.of(status, trailers, ""));
      }
      super.onClose(typed, trailers);
    }
  }
}
