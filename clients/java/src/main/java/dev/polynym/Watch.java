package dev.polynym;

import dev.polynym.errors.PolynymException;
import dev.polynym.internal.RetryPolicy;
import dev.polynym.internal.Rules;
import dev.polynym.v1.DirectoryServiceGrpc.DirectoryServiceBlockingStub;
import dev.polynym.v1.WatchRequest;
import dev.polynym.v1.WatchResponse;
import io.grpc.Context.CancellableContext;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The events of a tenant as they are committed. One thread reads them, by the iterator or by {@link
 * #forEach}; it waits for the next event. A watch resumes by itself after a lost connection, and
 * when the server ends it. It ends with a {@link PolynymException} that a retry cannot mend, such
 * as {@code RESUME_EXPIRED}, and without one after {@link #close}, which any thread may call.
 */
public final class Watch implements Iterable<WatchEvent>, Iterator<WatchEvent>, AutoCloseable {
  /** The server sends a heartbeat every 15 seconds. */
  private static final Duration MAX_SILENCE = Duration.ofSeconds(45);

  private static final StatusException SILENCE =
      Status.UNAVAILABLE.withDescription("the server is silent").asException();

  private static final int MAX_RECENT = 1_000;

  private final DirectoryServiceBlockingStub stub;
  private final WatchRequest request;
  private final Rules rules;
  private final Consumer<Watch> onClose;
  private final Context caller = Context.current();
  private final CountDownLatch closed = new CountDownLatch(1);

  private volatile String resumeToken;
  private volatile @Nullable CancellableContext streamContext;
  private @Nullable Iterator<WatchResponse> stream;
  private @Nullable WatchEvent next;
  private boolean answered;
  private boolean silent;
  private int failures;
  private final Set<String> recent = new LinkedHashSet<>();

  Watch(
      DirectoryServiceBlockingStub stub,
      WatchRequest request,
      Rules rules,
      Consumer<Watch> onClose) {
    this.onClose = onClose;
    this.stub = stub;
    this.rules = rules;
    this.request = request;
    this.resumeToken = request.getResumeToken();
  }

  /**
   * Waits for the first response: changes that are acknowledged later are among the events. It
   * fails as a call does: if no server can be reached in its time, or after some attempts.
   */
  void begin() {
    Predicate<PolynymException> isExhausted = error -> !isAskedAgain(error);
    try {
      while (!answered && !isClosed()) {
        next = read(isExhausted);
      }
    } catch (PolynymException failure) {
      close();
      throw failure;
    }
  }

  private boolean isAskedAgain(PolynymException error) {
    Deadline patience = Deadline.after(rules.timeout().toNanos(), TimeUnit.NANOSECONDS);
    return !rules.isUnreachable(error)
        && rules.allowsRetry()
        && rules.retries().delay(error, failures, patience) != RetryPolicy.NEVER;
  }

  /**
   * Returns the token with which a later watch of the same users and types resumes after the last
   * event that this one has returned. It advances without events, too.
   *
   * @return the token
   */
  public String resumeToken() {
    return resumeToken;
  }

  @Override
  public Iterator<WatchEvent> iterator() {
    return this;
  }

  /** Waits for the next event. Returns false once the watch is closed. */
  @Override
  public boolean hasNext() {
    while (next == null && !isClosed()) {
      next = read(error -> false);
    }
    return next != null && !isClosed();
  }

  @Override
  public WatchEvent next() {
    WatchEvent event = hasNext() ? next : null;
    if (event == null) {
      throw new NoSuchElementException("the watch is closed");
    }
    next = null;
    resumeToken = event.resumeToken();
    return event;
  }

  /** Ends the watch: a thread that waits for an event stops waiting. */
  @Override
  public void close() {
    closed.countDown();
    end(streamContext, null);
    onClose.accept(this);
  }

  private boolean isClosed() {
    return closed.getCount() == 0;
  }

  private static void end(
      @Nullable CancellableContext context, @Nullable StatusException reason) {
    if (context != null) {
      context.cancel(reason);
    }
  }

  /** Reads a response, or reconnects. Returns the event, unless there is none or it is repeated. */
  private @Nullable WatchEvent read(Predicate<PolynymException> isExhausted) {
    try {
      Iterator<WatchResponse> responses = stream == null ? open() : stream;
      stream = responses;
      if (!hasNext(responses)) {
        throw Status.UNAVAILABLE.withDescription("the watch has ended").asRuntimeException();
      }
      return accept(responses.next());
    } catch (StatusRuntimeException failure) {
      stream = null;
      end(streamContext, null);
      if (!isClosed()) {
        recover(failure, isExhausted);
      }
      return null;
    }
  }

  private Iterator<WatchResponse> open() {
    silent = true;
    CancellableContext context = caller.withCancellation();
    streamContext = context;
    if (isClosed()) {
      end(context, null);
    }
    WatchRequest resumed = request.toBuilder().setResumeToken(resumeToken).build();
    Context previous = context.attach();
    try {
      return stub.watch(resumed);
    } finally {
      context.detach(previous);
    }
  }

  /** Waits for a response; a server that stays silent for too long counts as lost. */
  private boolean hasNext(Iterator<WatchResponse> responses) {
    CancellableContext context = streamContext;
    Duration patience = silent ? rules.timeout() : MAX_SILENCE;
    Future<?> alarm = alarm(context, patience);
    try {
      return responses.hasNext();
    } finally {
      alarm.cancel(false);
    }
  }

  private Future<?> alarm(@Nullable CancellableContext context, Duration patience) {
    Runnable onTimeout =
        () -> {
          rules.servers().replace();
          end(context, SILENCE);
        };
    return rules.timers().after(patience.toNanos(), onTimeout);
  }

  private @Nullable WatchEvent accept(WatchResponse response) {
    answered = true;
    silent = false;
    failures = 0;
    if (!response.hasEvent() || !recent.add(response.getEvent().getEventId())) {
      resumeToken = response.getResumeToken();
      return null;
    }
    if (recent.size() > MAX_RECENT) {
      recent.remove(recent.iterator().next());
    }
    return new WatchEvent(response.getEvent(), response.getResumeToken());
  }

  private void recover(StatusRuntimeException failure, Predicate<PolynymException> isExhausted) {
    PolynymException error = PolynymException.from(failure);
    if (error == null) {
      error = PolynymException.of(failure.getStatus(), failure.getTrailers(), "");
    }
    failures++;
    boolean interrupted = Thread.currentThread().isInterrupted();
    boolean gone = interrupted || caller.isCancelled() || rules.isClosed();
    if (gone || isExhausted.test(error) || !RetryPolicy.isRetryable(error)) {
      throw error;
    }
    try {
      closed.await(backoff(error), TimeUnit.NANOSECONDS);
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      throw error;
    }
  }

  /** A server that was lost is looked for at least as often as calls do. */
  private long backoff(PolynymException error) {
    long nanos = RetryPolicy.backoff(error, failures);
    long longest = rules.retries().longestWait().toNanos();
    return error.reason().isEmpty() ? Math.min(nanos, longest) : nanos;
  }
}
