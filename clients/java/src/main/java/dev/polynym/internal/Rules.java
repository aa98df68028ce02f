package dev.polynym.internal;

import com.google.protobuf.DescriptorProtos.MethodOptions.IdempotencyLevel;
import com.google.protobuf.Descriptors;
import dev.polynym.Attempt;
import dev.polynym.errors.ClosedException;
import dev.polynym.errors.PolynymException;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import io.grpc.protobuf.ProtoMethodDescriptorSupplier;
import java.time.Duration;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The rules of all calls: tenant, credential, deadline, request id, retries and typed errors. They
 * read the descriptors, so that a new method has them, too.
 */
public final class Rules extends Channel {
  /** Marks the stubs whose unary calls block, and therefore can throw typed exceptions. */
  public static final CallOptions.Key<Boolean> BLOCKING =
      CallOptions.Key.createWithDefault("dev.polynym.blocking", false);

  /** Marks a call of several callers, who repeat it by themselves. */
  public static final CallOptions.Key<Boolean> SHARED =
      CallOptions.Key.createWithDefault("dev.polynym.shared", false);

  /** Counts the attempts that reached a server, of the call and of earlier ones for the same. */
  public static final CallOptions.Key<@Nullable AtomicInteger> ATTEMPTS =
      CallOptions.Key.create("dev.polynym.attempts");

  private static final System.Logger LOG = System.getLogger("dev.polynym");

  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final Servers servers;
  private final String tenant;
  private final @Nullable Token token;
  private final Duration timeout;
  private final RetryPolicy retries;
  private final @Nullable Consumer<Attempt> observer;
  private final Failures failures;
  private final RetryBudget budget = new RetryBudget();
  private final Timers timers = new Timers();
  private final OpenCalls openCalls = new OpenCalls();
  private final Set<RepeatedCall<?, ?>> waiting = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /** The rules with their settings. */
  public Rules(
      Servers servers,
      String tenant,
      @Nullable Token token,
      Duration timeout,
      RetryPolicy retries,
      @Nullable Consumer<Attempt> observer) {
    this.servers = servers;
    this.tenant = tenant;
    this.token = token;
    this.timeout = timeout;
    this.retries = retries;
    this.observer = observer;
    this.failures = new Failures(servers.names());
  }

  @Override
  public <ReqT, RespT> ClientCall<ReqT, RespT> newCall(
      MethodDescriptor<ReqT, RespT> method, CallOptions options) {
    if (closed && options.getOption(BLOCKING)) {
      throw new ClosedException();
    }
    if (method.getType() != MethodType.UNARY) {
      return stream(method, options);
    }
    if (options.getDeadline() != null) {
      return new UnaryCall<>(method, options, this);
    }
    Deadline deadline = Deadline.after(timeout.toNanos(), TimeUnit.NANOSECONDS);
    return new UnaryCall<>(method, options.withDeadline(deadline), this);
  }

  private <ReqT, RespT> ClientCall<ReqT, RespT> stream(
      MethodDescriptor<ReqT, RespT> method, CallOptions options) {
    if (method.getType().clientSendsOneMessage()) {
      return new StreamCall<>(method, options, this);
    }
    ServerConnection picked = servers.pick(null);
    ServerConnection server = picked == null ? servers.any() : picked;
    return new DuplexCall<>(method, options, server, this);
  }

  @Override
  public String authority() {
    return servers.any().channel().authority();
  }

  /** The request with the tenant and the request id of this client. */
  <T> T completed(T request) {
    return RequestFields.completed(request, tenant);
  }

  /** Adds the credential to the headers of a call. */
  void authorize(Metadata headers) {
    if (token != null) {
      headers.discardAll(AUTHORIZATION);
      headers.put(AUTHORIZATION, "Bearer " + token.value());
    }
  }

  /** Reports an attempt to the user's observer, whose exceptions do not reach the call. */
  void observe(
      MethodDescriptor<?, ?> method,
      int number,
      Duration duration,
      @Nullable PolynymException error,
      @Nullable ServerConnection server) {
    if (observer != null) {
      Status.Code code = error == null ? Status.Code.OK : error.code();
      String reason = error == null ? "" : error.reason();
      String service = Objects.requireNonNull(method.getServiceName());
      String name = Objects.requireNonNull(method.getBareMethodName());
      String address = server == null ? null : server.address();
      try {
        observer.accept(new Attempt(service, name, number, duration, code, reason, address));
      } catch (RuntimeException | Error failed) {
        LOG.log(System.Logger.Level.WARNING, "the observer of calls has failed", failed);
      }
    }
  }

  /** The errors of calls that got no answer. */
  Failures failures() {
    return failures;
  }

  /** Whether a call has failed because it reached no server in its time. */
  public boolean isUnreachable(PolynymException error) {
    return failures.isUnreachable(error);
  }

  /** The time for a call that sets no deadline. */
  public Duration timeout() {
    return timeout;
  }

  /** Which errors are retried, and when. */
  public RetryPolicy retries() {
    return retries;
  }

  /** Whether attempts may be repeated now. */
  public boolean allowsRetry() {
    return budget.allowsRetry();
  }

  RetryBudget budget() {
    return budget;
  }

  /** Runs delayed attempts. */
  public Timers timers() {
    return timers;
  }

  /** The connections of all calls. */
  public Servers servers() {
    return servers;
  }

  /** Whether the client is closed. */
  public boolean isClosed() {
    return closed;
  }

  /** The calls that wait for their next attempts. */
  Set<RepeatedCall<?, ?>> waiting() {
    return waiting;
  }

  OpenCalls openCalls() {
    return openCalls;
  }

  /** Ends the calls that wait, and after some time those under way. */
  public void close(Duration patience) {
    closed = true;
    waiting.forEach(RepeatedCall::wake);
    openCalls.await(patience);
    servers.close();
    timers.close();
  }

  /** Whether a method changes something: all do that are not marked NO_SIDE_EFFECTS. */
  static boolean isMutation(MethodDescriptor<?, ?> method) {
    if (method.getSchemaDescriptor() instanceof ProtoMethodDescriptorSupplier supplier) {
      Descriptors.MethodDescriptor descriptor = supplier.getMethodDescriptor();
      IdempotencyLevel level = descriptor.getOptions().getIdempotencyLevel();
      return level != IdempotencyLevel.NO_SIDE_EFFECTS;
    }
    return true;
  }
}
