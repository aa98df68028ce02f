package dev.polynym.internal;

import dev.polynym.errors.ClosedException;
import dev.polynym.errors.PolynymException;
import io.grpc.CallOptions;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.time.Duration;

/** A call with a stream of requests: it gets the credential and typed errors, and never waits. */
final class DuplexCall<ReqT, RespT> extends SimpleForwardingClientCall<ReqT, RespT> {
  private final MethodDescriptor<ReqT, RespT> method;
  private final ServerConnection server;
  private final Rules rules;
  private long begun;

  DuplexCall(
      MethodDescriptor<ReqT, RespT> method,
      CallOptions options,
      ServerConnection server,
      Rules rules) {
    super(server.channel().newCall(method, options));
    this.method = method;
    this.server = server;
    this.rules = rules;
  }

  @Override
  public void start(Listener<RespT> listener, Metadata headers) {
    rules.authorize(headers);
    rules.openCalls().begun();
    begun = System.nanoTime();
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
      PolynymException error = status.isOk() ? null : error(status, trailers);
      rules.observe(method, 1, Duration.ofNanos(System.nanoTime() - begun), error, server);
      Status typed = error == null ? status : error.getStatus().withCause(error);
      super.onClose(typed, trailers);
    }

    private PolynymException error(Status status, Metadata trailers) {
      PolynymException error = rules.failures().of(status, trailers, "", answered);
      boolean ended = rules.isClosed() && error.code() == Status.Code.UNAVAILABLE;
      return ended && error.reason().isEmpty() ? new ClosedException() : error;
    }
  }
}
