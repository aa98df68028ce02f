package dev.polynym.internal;

import dev.polynym.Attempt;
import dev.polynym.errors.ClosedException;
import dev.polynym.errors.PolynymException;
import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.Context;
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
 * A unary call of one or more attempts, each a call of a server's channel. Attempts follow each
 * other, and the fields of the call's progress belong to the current one; {@code cancel} may come
 * at any time, and {@code this} guards what it touches.
 *
 * <p>On a blocking stub, {@link #halfClose} makes all attempts on the caller's thread and throws
 * the typed exception.
 */
final class UnaryCall<ReqT, RespT> extends ClientCall<ReqT, RespT> {
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

  /** The attempts that reached a server, and the others. */
  private int attempts;
  private int misses;
  private @Nullable ServerConnection server;
  private long begun;
  private @Nullable Object lostWith;
  private boolean outcomeUnknown;
  private boolean finished;
  private @Nullable PolynymException failure;

  private @Nullable ClientCall<ReqT, RespT> attempt;
  private @Nullable Future<?> retry;
  private boolean cancelled;
  private @Nullable Throwable cancelCause;

  UnaryCall(MethodDescriptor<ReqT, RespT> method, CallOptions options, Rules rules) {
    this.method = method;
    this.rules = rules;
    this.caller = options.getOption(Rules.BLOCKING) ? new CallerExecutor() : null;
    this.options = caller == null ? options : options.withExecutor(caller);
    Executor chosen = this.options.getExecutor();
    this.executor = chosen == null ? Runnable::run : chosen;
    this.deadline = earlier(Objects.requireNonNull(options.getDeadline()), context.getDeadline());
    this.attempts = options.getOption(Rules.ATTEMPTS);
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
    rules.openCalls().begun();
    begin();
    if (caller != null) {
      waitFor(caller);
    }
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
    begun = System.nanoTime();
    if (rules.isClosed()) {
      fail(new ClosedException(requestId()));
      return;
    }
    ServerConnection picked = rules.servers().pick(server);
    if (picked == null && rules.retries().waitForReady()) {
      server = null;
      ended(Failures.unreachable(), new Metadata(), false);
      return;
    }
    server = picked == null ? rules.servers().any() : picked;
    send(server);
  }

  private void send(ServerConnection target) {
    Sent sent = new Sent();
    ClientCall<ReqT, RespT> call =
        target.channel().newCall(method, options.withStreamTracerFactory(sent));
    Metadata attemptHeaders = new Metadata();
    attemptHeaders.merge(headers);
    rules.authorize(attemptHeaders);
    call.start(new Answer(sent), attemptHeaders);
    if (register(call)) {
      call.cancel("the call was cancelled", cancelCause);
      return;
    }
    call.request(2);
    call.setMessageCompression(compressed);
    call.sendMessage(Objects.requireNonNull(request, "the call has no request"));
    call.halfClose();
  }

  /** Makes an attempt the one to cancel. Returns whether the call was cancelled before. */
  private synchronized boolean register(ClientCall<ReqT, RespT> call) {
    attempt = call;
    return cancelled;
  }

  private synchronized boolean unregister() {
    attempt = null;
    return cancelled;
  }

  /** The end of an attempt: the call ends, or waits for the next one. */
  private void ended(Status status, Metadata trailers, boolean reached) {
    boolean left = unregister() || context.isCancelled();
    if (reached) {
      attempts++;
    } else {
      misses++;
    }
    if (status.isOk()) {
      observe(Status.Code.OK, "");
      rules.budget().answered();
      connection().answered();
      close(status, trailers);
      return;
    }
    PolynymException error = error(status, trailers, left, reached);
    observe(error.code(), error.reason());
    if (reached && !left) {
      connection().failed(error);
    }
    boolean lost = reached && Rules.isMutation(method) && RetryPolicy.isLost(error);
    outcomeUnknown = lost || (outcomeUnknown && !RetryPolicy.settles(error));

    boolean over = left || rules.isClosed();
    long delay = over ? RetryPolicy.NEVER : reached ? delay(error, lost) : patience(error);
    if (delay == RetryPolicy.NEVER || !schedule(delay)) {
      fail(error);
    }
  }

  /** The time until the attempt after one that failed at a server. */
  private long delay(PolynymException error, boolean lost) {
    RetryBudget budget = rules.budget();
    if (!RetryPolicy.isRetryable(error)) {
      if (!error.reason().isEmpty()) {
        budget.answered();
      }
      return RetryPolicy.NEVER;
    }
    if (error.retryAfter() == null) {
      budget.failed(lostWith);
    }
    boolean repeatable = !lost || !requestId().isEmpty();
    if (!repeatable || options.getOption(Rules.SHARED) || !budget.allowsRetry()) {
      return RetryPolicy.NEVER;
    }
    return rules.retries().delay(error, attempts, deadline);
  }

  /** The time until the attempt after one that reached no server. */
  private long patience(PolynymException error) {
    if (error.code() != Status.Code.UNAVAILABLE) {
      return RetryPolicy.NEVER;
    }
    rules.servers().revive(rules.retries().firstWait());
    return rules.retries().patience(misses, deadline);
  }

  private ServerConnection connection() {
    return Objects.requireNonNull(server);
  }

  /**
   * The typed error. A connection that was lost is UNAVAILABLE, whatever gRPC calls it; so is one
   * that was not there in time.
   */
  private PolynymException error(
      Status status, Metadata trailers, boolean callerLeft, boolean reached) {
    PolynymException error = Failures.of(status, trailers, requestId(), reached);
    boolean late = status.getCode() == Status.Code.DEADLINE_EXCEEDED;
    boolean unreachable = late && !reached && (server == null || !server.isConnected());
    if (callerLeft || !(unreachable || RetryPolicy.isConnectionLost(error))) {
      return error;
    }
    if (rules.isClosed()) {
      return new ClosedException(requestId());
    }
    return Failures.connectionLost(error, reached);
  }

  private void observe(Status.Code code, String reason) {
    Duration duration = Duration.ofNanos(System.nanoTime() - begun);
    String service = Objects.requireNonNull(method.getServiceName());
    String name = Objects.requireNonNull(method.getBareMethodName());
    String address = server == null ? null : server.address();
    int number = attempts + misses;
    rules.observe(new Attempt(service, name, number, duration, code, reason, address));
  }

  /** Waits for the next attempt. Returns whether the call goes on. */
  private boolean schedule(long delay) {
    rules.waiting().add(this);
    synchronized (this) {
      if (cancelled) {
        return !rules.waiting().remove(this);
      }
      retry = rules.timers().after(delay, this::wake);
    }
    if (rules.isClosed()) {
      wake();
    }
    return true;
  }

  /** Ends the wait for the next attempt. */
  void wake() {
    if (rules.waiting().remove(this)) {
      executor.execute(context.wrap(this::retry));
    }
  }

  private void retry() {
    try {
      if (unregister()) {
        fail(Status.CANCELLED.withDescription("the call was cancelled").withCause(cancelCause));
      } else {
        begin();
      }
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
    rules.openCalls().ended();
    Objects.requireNonNull(listener, "the call was not started").onClose(status, trailers);
  }

  /** Collects the answer of an attempt, and passes it on once it is the answer of the call. */
  private final class Answer extends Listener<RespT> {
    private final Sent sent;
    private @Nullable Metadata answerHeaders;
    private @Nullable RespT answer;

    Answer(Sent sent) {
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
      lostWith = sent.lostWith(status);
      ended(status, trailers, sent.connection != null && !Failures.isRefused(status));
    }
  }

  /** Notes the connection of the last stream: if it got one, the server may have seen it. */
  private static final class Sent extends ClientStreamTracer.Factory {
    private volatile @Nullable Attributes connection;
    private volatile boolean answered;

    @Override
    public ClientStreamTracer newClientStreamTracer(
        ClientStreamTracer.StreamInfo info, Metadata headers) {
      connection = null;
      return new ClientStreamTracer() {
        @Override
        public void streamCreated(Attributes transport, Metadata streamHeaders) {
          connection = transport;
        }

        @Override
        public void inboundTrailers(Metadata trailers) {
          answered = true;
        }
      };
    }

    /** The connection with which the attempt was lost; null if only the attempt failed. */
    @Nullable Object lostWith(Status status) {
      return answered || Failures.isReset(status) ? null : connection;
    }
  }
}
