package dev.polynym.internal;

import dev.polynym.errors.PolynymException;
import io.grpc.CallOptions;
import io.grpc.Deadline;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A call with a stream of answers. It waits for a server as long as a unary call does; an attempt
 * that a server has seen is the last one.
 */
final class StreamCall<ReqT, RespT> extends RepeatedCall<ReqT, RespT> {
  private final Deadline patience;
  private final Attempts attempts;
  private volatile @Nullable AttemptTracer current;
  private volatile boolean late;

  StreamCall(MethodDescriptor<ReqT, RespT> method, CallOptions options, Rules rules) {
    super(method, options, rules);
    Deadline usual = Deadline.after(rules.timeout().toNanos(), TimeUnit.NANOSECONDS);
    Deadline own = options.getDeadline();
    patience = deadline(own == null ? usual : own.minimum(usual));
    attempts = new Attempts(rules, patience, null);
  }

  @Override
  public void halfClose() {
    super.halfClose();
    rules.timers().after(patience.timeRemaining(TimeUnit.NANOSECONDS), this::endUnlessSent);
  }

  /** A connection that is still being made has taken too long. */
  private void endUnlessSent() {
    AttemptTracer tracer = current;
    if (tracer != null && !tracer.isSent() && !isFinished()) {
      late = true;
      cancel("there was no connection in time", null);
    }
  }

  @Override
  Listener<RespT> answer(AttemptTracer tracer) {
    current = tracer;
    return new Answers(tracer);
  }

  @Override
  void ended(Status status, Metadata trailers, boolean reached) {
    boolean left = unregister();
    int number = attempts.note(reached);
    if (status.isOk()) {
      observe(number, null);
      close(status, trailers);
      return;
    }
    Status ended = late && !reached ? rules.failures().unreachable() : status;
    PolynymException error = error(ended, trailers, left, reached);
    observe(number, error);
    boolean over = reached || left || rules.isClosed();
    long delay = over ? RetryPolicy.NEVER : attempts.patience(error);
    if (delay == RetryPolicy.NEVER || !schedule(delay)) {
      fail(error);
    }
  }

  private final class Answers extends SimpleForwardingClientCallListener<RespT> {
    private final AttemptTracer tracer;

    Answers(AttemptTracer tracer) {
      super(listener());
      this.tracer = tracer;
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      if (!isFinished()) {
        ended(status, trailers, tracer.hasReached(status));
      }
    }
  }
}
