package dev.polynym.internal;

import dev.polynym.errors.PolynymException;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A unary call. On a blocking stub, {@link #halfClose} makes all attempts on the caller's thread
 * and throws the typed exception.
 */
final class UnaryCall<ReqT, RespT> extends RepeatedCall<ReqT, RespT> {
  private final @Nullable CallerExecutor caller;
  private final Attempts attempts;
  private @Nullable Object lostWith;
  private @Nullable PolynymException failure;

  UnaryCall(MethodDescriptor<ReqT, RespT> method, CallOptions options, Rules rules) {
    this(method, options, rules, options.getOption(Rules.BLOCKING) ? new CallerExecutor() : null);
  }

  private UnaryCall(
      MethodDescriptor<ReqT, RespT> method,
      CallOptions options,
      Rules rules,
      @Nullable CallerExecutor caller) {
    super(method, caller == null ? options : options.withExecutor(caller), rules);
    this.caller = caller;
    this.attempts =
        new Attempts(
            rules,
            deadline(Objects.requireNonNull(options.getDeadline())),
            options.getOption(Rules.ATTEMPTS));
  }

  /** The answer is one message; a second one would be an error. */
  @Override
  public void start(Listener<RespT> responseListener, Metadata callHeaders) {
    super.start(responseListener, callHeaders);
    super.request(2);
  }

  /** Does nothing: the answer of a unary call is one message, which arrives with the end. */
  @Override
  public void request(int numMessages) {}

  @Override
  public void halfClose() {
    super.halfClose();
    if (caller != null) {
      waitFor(caller);
    }
  }

  private void waitFor(CallerExecutor tasks) {
    boolean interrupted = false;
    while (!isFinished()) {
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

  @Override
  Listener<RespT> answer(AttemptTracer tracer) {
    return new Answer(tracer);
  }

  @Override
  void ended(Status status, Metadata trailers, boolean reached) {
    boolean left = unregister();
    int number = attempts.note(reached);
    if (status.isOk()) {
      observe(number, null);
      rules.budget().answered();
      connection().answered();
      close(status, trailers);
      return;
    }
    PolynymException error = error(status, trailers, left, reached);
    observe(number, error);
    if (reached && !left) {
      connection().failed(error);
    }
    boolean lost = reached && Rules.isMutation(method) && RetryPolicy.isLost(error);
    attempts.noteFailure(error, lost);
    boolean over = left || rules.isClosed();
    long delay = over ? RetryPolicy.NEVER : delay(error, lost, reached);
    if (delay == RetryPolicy.NEVER || !schedule(delay)) {
      fail(error);
    }
  }

  private long delay(PolynymException error, boolean lost, boolean reached) {
    if (!reached) {
      return attempts.patience(error);
    }
    boolean safe = !lost || !requestId().isEmpty();
    return attempts.delay(error, safe && !options.getOption(Rules.SHARED), lostWith);
  }

  private ServerConnection connection() {
    return Objects.requireNonNull(server());
  }

  @Override
  void fail(PolynymException error) {
    failure = attempts.isOutcomeUnknown() ? error.withUnknownOutcome() : error;
    super.fail(failure);
  }

  /** Collects the answer of an attempt, and passes it on once it is the answer of the call. */
  private final class Answer extends Listener<RespT> {
    private final AttemptTracer tracer;
    private @Nullable Metadata headers;
    private @Nullable RespT message;

    Answer(AttemptTracer tracer) {
      this.tracer = tracer;
    }

    @Override
    public void onHeaders(Metadata received) {
      headers = received;
    }

    @Override
    public void onMessage(RespT received) {
      if (message != null) {
        throw Status.INTERNAL.withDescription("a unary call has two answers").asRuntimeException();
      }
      message = received;
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      if (isFinished()) {
        return;
      }
      if (status.isOk() && headers != null) {
        listener().onHeaders(headers);
      }
      if (status.isOk() && message != null) {
        listener().onMessage(message);
      }
      lostWith = tracer.lostWith(status);
      ended(status, trailers, tracer.hasReached(status));
    }
  }
}
