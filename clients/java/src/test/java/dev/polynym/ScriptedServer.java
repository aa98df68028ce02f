package dev.polynym;

import com.google.protobuf.Any;
import com.google.protobuf.Duration;
import com.google.protobuf.Message;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.polynym.v1.BatchResolveIdentitiesRequest;
import dev.polynym.v1.BatchResolveIdentitiesResponse;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Found;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Result;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.CreateUserResponse;
import dev.polynym.v1.DirectoryServiceGrpc;
import dev.polynym.v1.Heartbeat;
import dev.polynym.v1.InboxServiceGrpc;
import dev.polynym.v1.MarkReadRequest;
import dev.polynym.v1.MarkReadResponse;
import dev.polynym.v1.RegistryServiceGrpc;
import dev.polynym.v1.ResolveIdentityRequest;
import dev.polynym.v1.ResolveIdentityResponse;
import dev.polynym.v1.User;
import dev.polynym.v1.WatchRequest;
import dev.polynym.v1.WatchResponse;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** A server that answers each call with the next error of a script, and then with success. */
final class ScriptedServer implements AutoCloseable {
  private static final String SILENCE = "SILENCE";

  private final Server server;
  private final int port;
  private final Queue<Object> script = new ConcurrentLinkedQueue<>();
  private final Queue<StreamObserver<?>> open = new ConcurrentLinkedQueue<>();
  /** The requests as they arrived. */
  final List<Message> requests = Collections.synchronizedList(new ArrayList<>());
  /** The headers as they arrived. */
  final List<Metadata> headers = Collections.synchronizedList(new ArrayList<>());
  /** The client's end of the connection of each call. */
  final List<SocketAddress> connections = Collections.synchronizedList(new ArrayList<>());

  /** The server's end of these connections. */
  final Set<SocketAddress> addresses = ConcurrentHashMap.newKeySet();

  ScriptedServer() throws IOException {
    this(0);
  }

  ScriptedServer(int chosenPort) throws IOException {
    server =
        Grpc.newServerBuilderForPort(chosenPort, InsecureServerCredentials.create())
            .addService(new Registry())
            .addService(new Directory())
            .addService(new Inbox())
            .intercept(new Recorder())
            .build()
            .start();
    this.port = server.getPort();
  }

  ClientBuilder client() {
    return PolynymClient.builder().server("http://127.0.0.1:" + port());
  }

  int port() {
    return port;
  }

  /** The next call fails with an error of the server, which has a reason. */
  void fails(Code code, String reason) {
    script.add(error(code, reason, 0));
  }

  /** The next call fails with an error of the server, which can be retried after a delay. */
  void fails(Code code, String reason, int retryMillis) {
    script.add(error(code, reason, retryMillis));
  }

  /** The next call fails as the transport fails: without a reason. */
  void fails(Code code) {
    script.add(code.toStatus().withDescription("broken").asRuntimeException());
  }

  /** The next call gets no answer. */
  void isSilent() {
    script.add(SILENCE);
  }

  /** The next call has this answer. */
  void answers(Message answer) {
    script.add(answer);
  }

  /** The next call has its answer once the future is complete. */
  CompletableFuture<Void> waits() {
    CompletableFuture<Void> released = new CompletableFuture<>();
    script.add(released);
    return released;
  }

  /** The next call fails with an error of the server that has metadata. */
  void fails(Code code, String reason, Map<String, String> metadata) {
    script.add(StatusProto.toStatusRuntimeException(status(code, reason, 0, metadata)));
  }

  private static StatusRuntimeException error(Code code, String reason, int retryMillis) {
    return StatusProto.toStatusRuntimeException(status(code, reason, retryMillis, Map.of()));
  }

  /** The status of an error, as batches have it for their items, too. */
  static com.google.rpc.Status status(
      Code code, String reason, int retryMillis, Map<String, String> metadata) {
    ErrorInfo info =
        ErrorInfo.newBuilder()
            .setDomain("polynym")
            .setReason(reason)
            .putAllMetadata(metadata)
            .build();
    var status = com.google.rpc.Status.newBuilder().setCode(code.value());
    status.addDetails(Any.pack(info));
    if (retryMillis > 0) {
      int nanos = retryMillis % 1_000 * 1_000_000;
      Duration delay =
          Duration.newBuilder().setSeconds(retryMillis / 1_000).setNanos(nanos).build();
      status.addDetails(Any.pack(RetryInfo.newBuilder().setRetryDelay(delay).build()));
    }
    return status.build();
  }

  /** Waits until so many calls have arrived. */
  void awaitRequests(int count) throws InterruptedException {
    while (requests.size() < count) {
      Thread.sleep(2);
    }
  }

  private <T extends Message> void answer(Message request, StreamObserver<T> observer, T success) {
    requests.add(request);
    Object next = script.poll();
    if (next instanceof StatusRuntimeException error) {
      observer.onError(error);
    } else if (next == SILENCE) {
      open.add(observer);
    } else if (next instanceof CompletableFuture<?> released) {
      open.add(observer);
      released.thenRun(() -> succeed(observer, success));
    } else {
      succeed(observer, next == null ? success : sameType(success, next));
    }
  }

  @SuppressWarnings("unchecked")
  private static <T> T sameType(T success, Object scripted) {
    return (T) success.getClass().cast(scripted);
  }

  private static <T> void succeed(StreamObserver<T> observer, T answer) {
    observer.onNext(answer);
    observer.onCompleted();
  }

  /** Ends the calls without an answer, so that clients close at once. */
  void endOpenCalls() {
    for (StreamObserver<?> observer : open) {
      try {
        observer.onError(Code.NOT_FOUND.toStatus().asException());
      } catch (IllegalStateException answered) {
        // It has had its answer since.
      }
    }
  }

  /** The item of a batch for a user who has the id. */
  static Result found(String userId) {
    Found found = Found.newBuilder().setUser(User.newBuilder().setUserId(userId)).build();
    return Result.newBuilder().setFound(found).build();
  }

  @Override
  public void close() {
    server.shutdownNow();
    try {
      server.awaitTermination();
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
    }
  }

  private final class Registry extends RegistryServiceGrpc.RegistryServiceImplBase {
    @Override
    public void createUser(CreateUserRequest request, StreamObserver<CreateUserResponse> observer) {
      answer(request, observer, CreateUserResponse.getDefaultInstance());
    }
  }

  private final class Directory extends DirectoryServiceGrpc.DirectoryServiceImplBase {
    @Override
    public void resolveIdentity(
        ResolveIdentityRequest request, StreamObserver<ResolveIdentityResponse> observer) {
      User user = User.newBuilder().setUserId(request.getIdentifier().getHandle()).build();
      answer(request, observer, ResolveIdentityResponse.newBuilder().setUser(user).build());
    }

    @Override
    public void batchResolveIdentities(
        BatchResolveIdentitiesRequest request,
        StreamObserver<BatchResolveIdentitiesResponse> observer) {
      var found = BatchResolveIdentitiesResponse.newBuilder();
      request.getIdentifiersList().forEach(name -> found.addResults(found(name.getHandle())));
      answer(request, observer, found.build());
    }

    @Override
    public void watch(WatchRequest request, StreamObserver<WatchResponse> observer) {
      Heartbeat heartbeat = Heartbeat.getDefaultInstance();
      answer(request, observer, WatchResponse.newBuilder().setHeartbeat(heartbeat).build());
    }
  }

  private final class Inbox extends InboxServiceGrpc.InboxServiceImplBase {
    @Override
    public void markRead(MarkReadRequest request, StreamObserver<MarkReadResponse> observer) {
      answer(request, observer, MarkReadResponse.getDefaultInstance());
    }
  }

  private final class Recorder implements ServerInterceptor {
    @Override
    public <ReqT, RespT> ServerCall.Listener<ReqT> interceptCall(
        ServerCall<ReqT, RespT> call, Metadata received, ServerCallHandler<ReqT, RespT> next) {
      headers.add(received);
      connections.add(call.getAttributes().get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR));
      addresses.add(call.getAttributes().get(Grpc.TRANSPORT_ATTR_LOCAL_ADDR));
      return Contexts.interceptCall(Context.current(), call, received, next);
    }
  }
}
