package dev.polynym.internal;

import dev.polynym.errors.ClosedException;
import dev.polynym.errors.PolynymException;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * A call of one request and one or more attempts, each a call of a server's channel. Attempts
 * follow each other, and the fields of the call's progress belong to the current one; {@code
 * cancel} and {@code request} may come at any time, and {@code this} guards what they touch.
 */
abstract class RepeatedCall<ReqT, RespT> extends ClientCall<ReqT, RespT> {
  final MethodDescriptor<ReqT, RespT> method;
  final CallOptions options;
  final Rules rules;
  private final Context context = Context.current();
  private final Context.CancellationListener contextEnd = ended -> wake();
  private final Executor executor;

  private @Nullable Listener<RespT> listener;
  private Metadata headers = new Metadata();
  private @Nullable ReqT request;
  private boolean compressed;
  private @Nullable ServerConnection server;
  private long begun;

  private @Nullable ClientCall<ReqT, RespT> attempt;
  private @Nullable Future<?> retry;
  private int requested;
  private boolean cancelled;
  private @Nullable Throwable cancelCause;
  private boolean finished;

  RepeatedCall(MethodDescriptor<ReqT, RespT> method, CallOptions options, Rules rules) {
    this.method = method;
    this.rules = rules;
    this.options = options;
    Executor chosen = options.getExecutor();
    this.executor = chosen == null ? Runnable::run : chosen;
  }

  /** The listener of an attempt that begins now. It calls {@link #ended}. */
  abstract Listener<RespT> answer(AttemptTracer tracer);

  /** The end of an attempt: the call ends, or waits for the next one. */
  abstract void ended(Status status, Metadata trailers, boolean reached);

  @Override
  public void start(Listener<RespT> responseListener, Metadata callHeaders) {
    listener = responseListener;
    headers = callHeaders;
  }

  @Override
  public synchronized void request(int numMessages) {
    requested += numMessages;
    if (attempt != null) {
      attempt.request(numMessages);
    }
  }

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
    rules.openCalls().begun();
    context.addListener(contextEnd, Runnable::run);
    begin();
  }

  @Override
  public void cancel(@Nullable String message, @Nullable Throwable cause) {
    ClientCall<ReqT, RespT> current;
    synchronized (this) {
      if (cancelled) {
        return;
      }
      cancelled = true;
      cancelCause = cause;
      current = attempt;
      if (retry != null) {
        retry.cancel(false);
      }
    }
    if (current != null) {
      current.cancel(message, cause);
    } else {
      wake();
    }
  }

  private void begin() {
    begun = System.nanoTime();
    try {
      if (rules.isClosed()) {
        fail(new ClosedException(requestId()));
        return;
      }
      ServerConnection picked = rules.servers().pick(server);
      if (picked == null && rules.retries().waitForReady()) {
        server = null;
        ended(rules.failures().unreachable(), new Metadata(), false);
        return;
      }
      server = picked == null ? rules.servers().any() : picked;
      send(server);
    } catch (RuntimeException | Error failed) {
      failUnsent(failed);
    }
  }

  private void send(ServerConnection target) {
    AttemptTracer tracer = new AttemptTracer();
    ClientCall<ReqT, RespT> call =
        target.channel().newCall(method, options.withStreamTracerFactory(tracer));
    try {
      transmit(call, answer(tracer));
    } catch (RuntimeException | Error failed) {
      failUnsent(failed);
      call.cancel("the call cannot be sent", failed);
    }
  }

  private void transmit(ClientCall<ReqT, RespT> call, Listener<RespT> answer) {
    Metadata attemptHeaders = new Metadata();
    attemptHeaders.merge(headers);
    rules.authorize(attemptHeaders);
    call.start(answer, attemptHeaders);
    if (register(call)) {
      call.cancel("the call was cancelled", cancelCause);
      return;
    }
    call.setMessageCompression(compressed);
    call.sendMessage(Objects.requireNonNull(request, "the call has no request"));
    call.halfClose();
  }

  /** Makes an attempt the one to cancel. Returns whether the call was cancelled before. */
  private synchronized boolean register(ClientCall<ReqT, RespT> call) {
    attempt = call;
    if (!cancelled) {
      call.request(requested);
    }
    return cancelled;
  }

  /** Ends the current attempt. Returns whether the caller has left. */
  final synchronized boolean unregister() {
    attempt = null;
    return cancelled || context.isCancelled();
  }

  /** Waits for the next attempt. Returns whether the call goes on. */
  final boolean schedule(long delay) {
    rules.waiting().add(this);
    synchronized (this) {
      if (cancelled) {
        return !rules.waiting().remove(this);
      }
      retry = rules.timers().after(delay, this::wake);
    }
    if (rules.isClosed() || context.isCancelled()) {
      wake();
    }
    return true;
  }

  /** Ends the wait for the next attempt. */
  final void wake() {
    if (rules.waiting().remove(this)) {
      executor.execute(context.wrap(this::retry));
    }
  }

  private void retry() {
    Status left = whyLeft();
    if (left == null) {
      begin();
    } else {
      fail(rules.failures().of(left, null, requestId(), false));
    }
  }

  /** Why the caller has left; null if it still waits. */
  private @Nullable Status whyLeft() {
    synchronized (this) {
      if (cancelled) {
        return Status.CANCELLED.withCause(cancelCause);
      }
    }
    return Contexts.statusFromCancelled(context);
  }

  /** The deadline of a call whose own one is this: the caller's may be earlier. */
  final Deadline deadline(Deadline own) {
    Deadline inherited = context.getDeadline();
    return inherited == null ? own : own.minimum(inherited);
  }

  /** Tells the observer of the end of the current attempt. */
  final void observe(int number, @Nullable PolynymException error) {
    Duration elapsed = Duration.ofNanos(System.nanoTime() - begun);
    rules.observe(method, number, elapsed, error, server);
  }

  /** The server of the current attempt; null if none was connected. */
  final @Nullable ServerConnection server() {
    return server;
  }

  final Listener<RespT> listener() {
    return Objects.requireNonNull(listener, "the call was not started");
  }

  final String requestId() {
    return request == null ? "" : RequestFields.requestId(request);
  }

  final synchronized boolean isFinished() {
    return finished;
  }

  private synchronized boolean finish() {
    boolean first = !finished;
    finished = true;
    return first;
  }

  /**
   * The typed error. A connection that was lost is UNAVAILABLE, whatever gRPC calls it; so is one
   * that was not there in time.
   */
  final PolynymException error(
      Status status, Metadata trailers, boolean callerLeft, boolean reached) {
    PolynymException error = rules.failures().of(status, trailers, requestId(), reached);
    boolean late = status.getCode() == Status.Code.DEADLINE_EXCEEDED;
    boolean unreachable = late && !reached && (server == null || !server.isConnected());
    if (callerLeft || !(unreachable || RetryPolicy.isConnectionLost(error))) {
      return error;
    }
    if (rules.isClosed()) {
      return new ClosedException(requestId());
    }
    return rules.failures().connectionLost(error, reached);
  }

  /** Something between the call and the server has thrown, such as an interceptor. */
  private void failUnsent(Throwable thrown) {
    Status status = Status.fromThrowable(thrown);
    boolean isBare = status.getDescription() == null;
    Status plain = isBare ? status.withDescription("the call cannot be sent") : status;
    fail(PolynymException.of(plain, Status.trailersFromThrowable(thrown), requestId()));
  }

  void fail(PolynymException error) {
    Metadata trailers = error.getTrailers();
    close(error.getStatus().withCause(error), trailers == null ? new Metadata() : trailers);
  }

  final void close(Status status, Metadata trailers) {
    if (finish()) {
      context.removeListener(contextEnd);
      rules.openCalls().ended();
      listener().onClose(status, trailers);
    }
  }
}
