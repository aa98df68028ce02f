package dev.polynym;

import static dev.polynym.Identifiers.handle;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.Message;
import dev.polynym.errors.AbortedException;
import dev.polynym.errors.DeadlineExceededException;
import dev.polynym.errors.NotFoundException;
import dev.polynym.errors.OutcomeUnknownException;
import dev.polynym.errors.PolynymException;
import dev.polynym.errors.ResourceExhaustedException;
import dev.polynym.errors.UnavailableException;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.CreateUserResponse;
import dev.polynym.v1.MarkReadRequest;
import dev.polynym.v1.RegistryServiceGrpc;
import dev.polynym.v1.User;
import dev.polynym.v1.WatchRequest;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status.Code;
import java.io.IOException;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class RulesTest {
  private static final CreateUserRequest CREATE = CreateUserRequest.getDefaultInstance();

  @AutoClose final ScriptedServer server = new ScriptedServer();
  @AutoClose final PolynymClient client = patient(server.client());

  RulesTest() throws IOException {}

  @AfterEach
  void endOpenCalls() {
    server.endOpenCalls();
  }

  /** A client for a busy machine: only tests of deadlines have short ones. */
  private static PolynymClient patient(ClientBuilder builder) {
    return builder.timeout(Duration.ofSeconds(20)).token("pn_token").tenant("europe").build();
  }

  private void assertSameRequest(int attempts) {
    assertEquals(attempts, server.requests.size());
    assertEquals(1, new HashSet<Message>(server.requests).size());
  }

  @Test
  void everyRequestHasCredentialTenantAndRequestId() {
    client.registry().createUser(CREATE);
    CreateUserRequest received = (CreateUserRequest) server.requests.get(0);
    assertEquals("europe", received.getTenant());
    assertEquals(4, UUID.fromString(received.getRequestId()).version());
    assertEquals("Bearer pn_token", header("authorization"));
    assertTrue(header("user-agent").startsWith("polynym-java/0.2.0"));

    CreateUserRequest own =
        CreateUserRequest.newBuilder().setTenant("asia").setRequestId("own").build();
    client.registry().createUser(own);
    assertEquals(own, server.requests.get(1));
  }

  private String header(String name) {
    return server.headers.get(0).get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
  }

  @Test
  void lostAttemptsAreRepeatedWithTheSameRequestId() {
    server.fails(Code.UNAVAILABLE);
    server.fails(Code.UNKNOWN, "OUTCOME_UNKNOWN");
    client.registry().createUser(CREATE);
    assertSameRequest(3);
  }

  @Test
  void threeLostAttemptsAreAnUnknownOutcome() {
    server.fails(Code.UNAVAILABLE);
    server.fails(Code.INTERNAL);
    server.fails(Code.UNAVAILABLE);
    OutcomeUnknownException unknown =
        assertThrows(
            OutcomeUnknownException.class, () -> client.registry().createUser(CREATE));
    assertSameRequest(3);
    CreateUserRequest received = (CreateUserRequest) server.requests.get(0);
    assertEquals(received.getRequestId(), unknown.requestId());
    assertTrue(unknown.getMessage().contains(unknown.requestId()));
  }

  @Test
  void aLaterAnswerSettlesTheOutcome() {
    server.fails(Code.UNAVAILABLE);
    server.fails(Code.ABORTED, "ETAG_MISMATCH");
    assertThrows(AbortedException.class, () -> client.registry().createUser(CREATE));

    server.fails(Code.UNAVAILABLE);
    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
    assertThrows(OutcomeUnknownException.class, () -> client.registry().createUser(CREATE));

    server.fails(Code.UNAVAILABLE);
    server.fails(Code.UNAUTHENTICATED, "CREDENTIAL_INVALID");
    assertThrows(OutcomeUnknownException.class, () -> client.registry().createUser(CREATE));
  }

  @Test
  void nothingIsUnknownIfTheServerWroteNothing() {
    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
    assertThrows(UnavailableException.class, () -> client.registry().createUser(CREATE));
    assertSameRequest(3);

    server.fails(Code.RESOURCE_EXHAUSTED, "ANSWERS_UNREAD");
    assertThrows(OutcomeUnknownException.class, () -> client.registry().createUser(CREATE));
    assertEquals(4, server.requests.size());
  }

  @Test
  void aMutationWithoutARequestIdIsSentOnce() {
    MarkReadRequest request = MarkReadRequest.getDefaultInstance();
    server.fails(Code.UNAVAILABLE);
    OutcomeUnknownException unknown =
        assertThrows(OutcomeUnknownException.class, () -> client.inbox().markRead(request));
    assertEquals("", unknown.requestId());
    assertEquals(1, server.requests.size());

    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
    client.inbox().markRead(request);
    assertEquals(3, server.requests.size());
  }

  @Test
  void anExhaustedResourceIsRetriedAfterItsDelay() {
    server.fails(Code.RESOURCE_EXHAUSTED, "OVERLOADED", 300);
    long start = System.nanoTime();
    client.resolve(handle("joe"));
    assertTrue(System.nanoTime() - start >= TimeUnit.MILLISECONDS.toNanos(300));
    assertEquals(2, server.requests.size());

    server.fails(Code.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
    assertThrows(ResourceExhaustedException.class, () -> client.resolve(handle("joe")));
    assertEquals(3, server.requests.size());
  }

  @Test
  void aDelayBeyondTheDeadlineEndsTheCallAtOnce() {
    server.fails(Code.RESOURCE_EXHAUSTED, "RATE_LIMITED", 55_000);
    ResolveOptions options = ResolveOptions.defaults().timeout(Duration.ofSeconds(50));
    ResourceExhaustedException limited =
        assertThrows(
            ResourceExhaustedException.class, () -> client.resolve(handle("joe"), options));
    assertEquals(Duration.ofSeconds(55), limited.retryAfter());
    assertEquals(1, server.requests.size());
  }

  @Test
  void theDeadlineCoversAllAttempts() {
    PolynymClient hasty = server.client().timeout(Duration.ofMillis(700)).build();
    try (hasty) {
      server.isSilent();
      assertThrows(DeadlineExceededException.class, () -> hasty.resolve(handle("joe")));
      server.isSilent();
      assertThrows(OutcomeUnknownException.class, () -> hasty.registry().createUser(CREATE));
    }
  }

  @Test
  void twoDeadlinesInARowOpenANewConnection() {
    PolynymClient hasty = server.client().timeout(Duration.ofMillis(700)).build();
    try (hasty) {
      hasty.resolve(handle("joe"));
      server.isSilent();
      assertThrows(DeadlineExceededException.class, () -> hasty.resolve(handle("joe")));
      hasty.resolve(handle("joe"));
      server.isSilent();
      assertThrows(DeadlineExceededException.class, () -> hasty.resolve(handle("joe")));
      assertEquals(1, Set.copyOf(server.connections).size(), "an answer was between");
      server.isSilent();
      assertThrows(DeadlineExceededException.class, () -> hasty.resolve(handle("joe")));
      hasty.resolve(handle("joe"));
      assertEquals(2, Set.copyOf(server.connections).size());
    }
  }

  @Test
  void aSilentWatchOpensANewConnection() {
    PolynymClient hasty = server.client().timeout(Duration.ofMillis(700)).build();
    try (hasty) {
      hasty.resolve(handle("joe"));
      server.isSilent();
      hasty.watch(WatchRequest.getDefaultInstance()).close();
      List<SocketAddress> connections = List.copyOf(server.connections);
      assertEquals(connections.get(0), connections.get(1));
      assertNotEquals(connections.get(1), connections.get(2));
    }
  }

  @Test
  void getOrCreateHasOneDeadline() {
    List<Deadline> deadlines = new CopyOnWriteArrayList<>();
    ClientInterceptor recorder =
        new ClientInterceptor() {
          @Override
          public <Q, A> ClientCall<Q, A> interceptCall(
              MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
            deadlines.add(options.getDeadline());
            return next.newCall(method, options);
          }
        };
    try (PolynymClient recorded = patient(server.client().intercept(recorder))) {
      server.fails(Code.NOT_FOUND, "IDENTITY_NOT_FOUND");
      assertTrue(recorded.getOrCreate(handle("joe"), User.getDefaultInstance()).created());
      assertFalse(deadlines.get(0).isBefore(deadlines.get(1)));
      CreateUserRequest created = (CreateUserRequest) server.requests.get(1);
      assertEquals(handle("joe"), created.getUser().getIdentities(0).getIdentifier());

      server.fails(Code.NOT_FOUND, "TENANT_NOT_FOUND");
      assertThrows(
          NotFoundException.class,
          () -> recorded.getOrCreate(handle("joe"), User.getDefaultInstance()));
      assertEquals(3, server.requests.size());
    }
  }

  @Test
  void aWatchBeginsWithThreeAttempts() {
    for (int attempt = 0; attempt < 4; attempt++) {
      server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 1);
    }
    WatchRequest all = WatchRequest.getDefaultInstance();
    assertThrows(UnavailableException.class, () -> client.watch(all));
    assertEquals(3, server.requests.size());
  }

  @Test
  void retriesCanBeTurnedOff() {
    try (PolynymClient once = patient(server.client().maxAttempts(1))) {
      server.fails(Code.UNAVAILABLE);
      assertThrows(UnavailableException.class, () -> once.resolve(handle("joe")));
      assertEquals(1, server.requests.size());
    }
  }

  @Test
  void futuresAreRetriedAndTyped() throws Exception {
    RegistryServiceGrpc.RegistryServiceFutureStub stub =
        RegistryServiceGrpc.newFutureStub(client.channel());
    server.fails(Code.UNAVAILABLE);
    stub.createUser(CREATE).get(50, TimeUnit.SECONDS);
    assertSameRequest(2);

    server.fails(Code.ABORTED, "ETAG_MISMATCH");
    ListenableFuture<CreateUserResponse> aborted = stub.createUser(CREATE);
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> aborted.get(50, TimeUnit.SECONDS));
    assertInstanceOf(AbortedException.class, PolynymException.from(failed));
  }

  @Test
  void anInterruptEndsABlockingCall() throws Exception {
    server.isSilent();
    CompletableFuture<Throwable> failure = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                client.registry().createUser(CREATE);
              } catch (PolynymException error) {
                failure.complete(Thread.currentThread().isInterrupted() ? error : null);
              }
            });
    thread.start();
    while (server.requests.isEmpty()) {
      Thread.sleep(5);
    }
    thread.interrupt();
    Throwable error = failure.get(50, TimeUnit.SECONDS);
    assertEquals(Code.CANCELLED, assertInstanceOf(OutcomeUnknownException.class, error).code());
  }
}
