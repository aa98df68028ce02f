package dev.polynym;

import com.google.protobuf.Descriptors;
import com.google.protobuf.DescriptorProtos.MethodOptions.IdempotencyLevel;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.protobuf.ProtoMethodDescriptorSupplier;
import java.time.Duration;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The rules of all calls: tenant, credential, deadline, request id, retries and typed errors. They
 * read the descriptors, so that a new method has them, too.
 */
final class Rules implements ClientInterceptor {
  /** Marks the stubs whose unary calls block, and therefore can throw typed exceptions. */
  static final CallOptions.Key<Boolean> BLOCKING =
      CallOptions.Key.createWithDefault("dev.polynym.blocking", false);

  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final String tenant;
  private final @Nullable Token token;
  private final Duration timeout;
  private final RetryPolicy retries;
  private final ScheduledExecutorService timers;
  private final Connections connections;

  Rules(
      String tenant,
      @Nullable Token token,
      Duration timeout,
      RetryPolicy retries,
      ScheduledExecutorService timers,
      Connections connections) {
    this.tenant = tenant;
    this.token = token;
    this.timeout = timeout;
    this.retries = retries;
    this.timers = timers;
    this.connections = connections;
  }

  @Override
  public <ReqT, RespT> ClientCall<ReqT, RespT> interceptCall(
      MethodDescriptor<ReqT, RespT> method, CallOptions options, Channel channel) {
    if (method.getType() != MethodType.UNARY) {
      return new StreamCall<>(channel.newCall(method, options), method, this);
    }
    if (options.getDeadline() != null) {
      return new UnaryCall<>(channel, method, options, this);
    }
    Deadline deadline = Deadline.after(timeout.toNanos(), TimeUnit.NANOSECONDS);
    return new UnaryCall<>(channel, method, options.withDeadline(deadline), this);
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

  /** The time for a call that sets no deadline. */
  Duration timeout() {
    return timeout;
  }

  /** Which errors are retried, and when. */
  RetryPolicy retries() {
    return retries;
  }

  /** Runs the delayed attempts. */
  ScheduledExecutorService timers() {
    return timers;
  }

  /** The connection of all calls. */
  Connections connections() {
    return connections;
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
