package dev.polynym;

import dev.polynym.errors.PolynymException;
import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A unary call of one or more attempts, each a call of the channel. Attempts follow each other, and
 * the fields of the call's progress belong to the current one; {@code cancel} may come at any time,
 * and {@code this} guards what it touches.
 *
 * <p>On a blocking stub, {@link #halfClose} makes all attempts on the caller's thread and throws
 * the typed exception.
 */
final class UnaryCall<ReqT, RespT> extends ClientCall<ReqT, RespT> {
  private final Channel channel;
  private final MethodDescriptor<ReqT, RespT> method;
  private final CallOptions options;
  private final Rules rules;
  private final Context context = Context.current();
  private final @Nullable CallerExecutor caller;
  private final Executor executor;
  private final Deadline deadline;

  private @Nullable Listener<RespT> listener;
  private Metadata headers = new Metadata();
  private @Nullable ReqT request;
  private boolean compressed;

  private int attempts;
  private boolean outcomeUnknown;
  private boolean finished;
  private @Nullable PolynymException failure;

  private @Nullable ClientCall<ReqT, RespT> attempt;
  private @Nullable Future<?> retry;
  private boolean cancelled;
  private @Nullable Throwable cancelCause;

  UnaryCall(
      Channel channel, MethodDescriptor<ReqT, RespT> method, CallOptions options, Rules rules) {
    this.channel = channel;
    this.method = method;
    this.rules = rules;
    this.caller = options.getOption(Rules.BLOCKING) ? new CallerExecutor() : null;
    this.options = caller == null ? options : options.withExecutor(caller);
    Executor chosen = this.options.getExecutor();
    this.executor = chosen == null ? Runnable::run : chosen;
    this.deadline = earlier(Objects.requireNonNull(options.getDeadline()), context.getDeadline());
  }

  private static Deadline earlier(Deadline call, @Nullable Deadline inherited) {
    return inherited == null ? call : call.minimum(inherited);
  }

  @Override
  public void start(Listener<RespT> responseListener, Metadata callHeaders) {
    listener = responseListener;
    headers = callHeaders;
  }

  /** Does nothing: the answer of a unary call is one message, which arrives with the end. */
  @Override
  public void request(int numMessages) {}

  @Override
  public void sendMessage(ReqT message) {
    request = rules.completed(message);
  }

  @Override
  public void setMessageCompression(boolean enabled) {
    compressed = enabled;
  }

  @Override
  public void halfClose() {
    begin();
    if (caller != null) {
      waitFor(caller);
    }
  }

  @Override
  public void cancel(@Nullable String message, @Nullable Throwable cause) {
    ClientCall<ReqT, RespT> current;
    boolean waiting;
    synchronized (this) {
      if (cancelled) {
        return;
      }
      cancelled = true;
      cancelCause = cause;
      current = attempt;
      waiting = retry != null && retry.cancel(false);
    }
    if (current != null) {
      current.cancel(message, cause);
    } else if (waiting) {
      executor.execute(() -> fail(Status.CANCELLED.withDescription(message).withCause(cause)));
    }
  }

  private void waitFor(CallerExecutor tasks) {
    boolean interrupted = false;
    while (!finished) {
      try {
        tasks.runNext();
      } catch (InterruptedException interrupt) {
        interrupted = true;
        cancel("the thread was interrupted", interrupt);
      }
    }
    tasks.close();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (failure != null) {
      throw failure;
    }
  }

  private void begin() {
    attempts++;
    ReqT message = Objects.requireNonNull(request, "the call has no request");
    Sent sent = new Sent();
    ClientCall<ReqT, RespT> call =
        channel.newCall(method, options.withStreamTracerFactory(sent));
    Metadata attemptHeaders = new Metadata();
    attemptHeaders.merge(headers);
    rules.authorize(attemptHeaders);
    call.start(new Attempt(sent), attemptHeaders);
    if (register(call)) {
      call.cancel("the call was cancelled", cancelCause);
      return;
    }
    call.request(2);
    call.setMessageCompression(compressed);
    call.sendMessage(message);
    call.halfClose();
  }

  /** Makes an attempt the one to cancel. Returns whether the call was cancelled before. */
  private synchronized boolean register(ClientCall<ReqT, RespT> call) {
    attempt = call;
    retry = null;
    return cancelled;
  }

  private synchronized boolean unregister() {
    attempt = null;
    return cancelled;
  }

  /** The end of an attempt: the call ends, or waits for the next one. */
  private void ended(Status status, Metadata trailers, boolean sent) {
    boolean wasCancelled = unregister();
    if (status.isOk()) {
      rules.connections().answered();
      close(status, trailers);
      return;
    }
    boolean left = wasCancelled || context.isCancelled();
    PolynymException error = error(status, trailers, left);
    rules.connections().failed(error, sent && !left);
    boolean lost = sent && Rules.isMutation(method) && RetryPolicy.isLost(error);
    outcomeUnknown = lost || (outcomeUnknown && !RetryPolicy.settles(error));

    boolean repeatable = !lost || !requestId().isEmpty();
    long delay = RetryPolicy.NEVER;
    if (repeatable && !left) {
      delay = rules.retries().delay(error, attempts, deadline);
    }
    if (delay == RetryPolicy.NEVER || !schedule(delay, error)) {
      fail(error);
    }
  }

  /** The typed error. A connection that was lost is UNAVAILABLE, whatever gRPC calls it. */
  private PolynymException error(Status status, Metadata trailers, boolean callerLeft) {
    PolynymException error = PolynymException.of(status, trailers, requestId());
    if (callerLeft || !RetryPolicy.isConnectionLost(error)) {
      return error;
    }
    Status lost = Status.UNAVAILABLE.withDescription(status.getDescription());
    return PolynymException.of(lost.withCause(status.getCause()), trailers, requestId());
  }

  private boolean schedule(long delay, PolynymException error) {
    if (error.reason().isEmpty()) {
      rules.connections().retry();
    }
    Runnable begin = context.wrap(this::retry);
    try {
      synchronized (this) {
        if (cancelled) {
          return false;
        }
        retry =
            rules.timers().schedule(() -> executor.execute(begin), delay, TimeUnit.NANOSECONDS);
      }
      return true;
    } catch (RejectedExecutionException closed) {
      return false;
    }
  }

  private void retry() {
    try {
      begin();
    } catch (RuntimeException failed) {
      fail(Status.fromThrowable(failed));
    }
  }

  private String requestId() {
    return request == null ? "" : RequestFields.requestId(request);
  }

  private void fail(Status status) {
    fail(PolynymException.of(status, null, requestId()));
  }

  private void fail(PolynymException error) {
    PolynymException typed = outcomeUnknown ? error.withUnknownOutcome() : error;
    failure = typed;
    Metadata trailers = typed.getTrailers();
    Status status = typed.getStatus().withCause(typed);
    close(status, trailers == null ? new Metadata() : trailers);
  }

  private void close(Status status, Metadata trailers) {
    finished = true;
    Objects.requireNonNull(listener, "the call was not started").onClose(status, trailers);
  }

  /** Collects the answer of an attempt, and passes it on once it is the answer of the call. */
  private final class Attempt extends Listener<RespT> {
    private final Sent sent;
    private @Nullable Metadata answerHeaders;
    private @Nullable RespT answer;

    Attempt(Sent sent) {
      this.sent = sent;
    }

    @Override
    public void onHeaders(Metadata received) {
      answerHeaders = received;
    }

    @Override
    public void onMessage(RespT message) {
      if (answer != null) {
        throw Status.INTERNAL.withDescription("a unary call has two answers").asRuntimeException();
      }
      answer = message;
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      Listener<RespT> receiver = Objects.requireNonNull(listener);
      if (status.isOk() && answerHeaders != null) {
        receiver.onHeaders(answerHeaders);
      }
      if (status.isOk() && answer != null) {
        receiver.onMessage(answer);
      }
      ended(status, trailers, sent.value);
    }
  }

  /** Notes whether an attempt got a connection: the server may have seen it. */
  private static final class Sent extends ClientStreamTracer.Factory {
    private volatile boolean value;

    @Override
    public ClientStreamTracer newClientStreamTracer(
        ClientStreamTracer.StreamInfo info, Metadata headers) {
      return new ClientStreamTracer() {
        @Override
        public void streamCreated(Attributes transport, Metadata streamHeaders) {
          value = true;
        }
      };
    }
  }
}
