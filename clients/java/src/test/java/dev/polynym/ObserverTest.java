package dev.polynym;

import static dev.polynym.Identifiers.handle;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.polynym.errors.UnavailableException;
import dev.polynym.testing.PolynymServer;
import dev.polynym.v1.AdminServiceGrpc;
import dev.polynym.v1.Policies;
import dev.polynym.v1.UpdateTenantRequest;
import dev.polynym.v1.WatchRequest;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ObserverTest {
  private static final UpdateTenantRequest TENANT =
      UpdateTenantRequest.newBuilder().setPolicies(Policies.getDefaultInstance()).build();

  @Test
  void itSeesEachAttempt() throws IOException {
    Queue<Attempt> seen = new ConcurrentLinkedQueue<>();
    try (ScriptedServer server = new ScriptedServer();
        PolynymClient client =
            server.client().timeout(Duration.ofSeconds(20)).observer(seen::add).build()) {
      server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 1);
      client.resolve(handle("joe"));

      List<Attempt> attempts = List.copyOf(seen);
      assertEquals(2, attempts.size());
      Attempt failed = attempts.get(0);
      assertEquals("polynym.v1.DirectoryService", failed.service());
      assertEquals("ResolveIdentity", failed.method());
      assertEquals(1, failed.number());
      assertEquals(Code.UNAVAILABLE, failed.code());
      assertEquals("STORE_UNAVAILABLE", failed.reason());
      assertEquals("http://127.0.0.1:" + server.port(), failed.server());
      assertEquals(2, attempts.get(1).number());
      assertEquals(Code.OK, attempts.get(1).code());
      assertTrue(attempts.get(1).duration().compareTo(Duration.ZERO) > 0);
    }
  }

  @Test
  void itsNumbersAreThoseOfAttemptsThatReachedAServer() throws IOException {
    Queue<Attempt> seen = new ConcurrentLinkedQueue<>();
    ClientBuilder builder = PolynymClient.builder().timeout(Duration.ofSeconds(1));
    try (Socket reserved = new Socket()) {
      reserved.bind(new InetSocketAddress("127.0.0.1", 0));
      String away = "http://127.0.0.1:" + reserved.getLocalPort();
      try (PolynymClient lonely = builder.server(away).observer(seen::add).build()) {
        assertThrows(UnavailableException.class, () -> lonely.resolve(handle("joe")));
      }
    }
    assertTrue(seen.size() > 1);
    assertTrue(seen.stream().allMatch(attempt -> attempt.number() == 1));
  }

  @Test
  void itSeesStreams() throws IOException {
    BlockingQueue<Attempt> seen = new LinkedBlockingQueue<>();
    WatchRequest all = WatchRequest.getDefaultInstance();
    try (ScriptedServer server = new ScriptedServer();
        PolynymClient client =
            server.client().timeout(Duration.ofSeconds(20)).observer(seen::add).build()) {
      String address = "http://127.0.0.1:" + server.port();
      server.fails(Code.OUT_OF_RANGE, "RESUME_EXPIRED", 1);
      assertThrows(StatusRuntimeException.class, client.directory().watch(all)::hasNext);
      assertEquals(stream("Watch", Code.OUT_OF_RANGE, "RESUME_EXPIRED", address), next(seen));
      client.directory().watch(all).forEachRemaining(response -> {});
      assertEquals(stream("Watch", Code.OK, "", address), next(seen));
    }
  }

  @Test
  @RequiresServer
  void itSeesStreamsThatTheCallerLeavesAndThoseOfRequests() {
    BlockingQueue<Attempt> seen = new LinkedBlockingQueue<>();
    try (PolynymServer server = PolynymServer.start();
        PolynymClient client =
            PolynymClient.builder().server(server.address()).observer(seen::add).build()) {
      client.admin().updateTenant(TENANT);
      next(seen);
      client.watch(WatchRequest.getDefaultInstance()).close();
      assertEquals(stream("Watch", Code.CANCELLED, "", server.address()), next(seen));
      AdminServiceGrpc.newStub(client.channel()).importUsers(new Ignored<>()).onCompleted();
      Attempt imported = next(seen);
      assertEquals("ImportUsers", imported.method());
      assertEquals(server.address(), imported.server());
    }
  }

  private static Attempt stream(String method, Code code, String reason, String server) {
    String service = "polynym.v1.DirectoryService";
    return new Attempt(service, method, 1, Duration.ZERO, code, reason, server);
  }

  /** The next attempt, whose time is checked, and left out. */
  private static Attempt next(BlockingQueue<Attempt> seen) {
    try {
      Attempt attempt = seen.poll(20, TimeUnit.SECONDS);
      assertNotNull(attempt);
      assertTrue(attempt.duration().compareTo(Duration.ZERO) > 0);
      return new Attempt(
          attempt.service(),
          attempt.method(),
          attempt.number(),
          Duration.ZERO,
          attempt.code(),
          attempt.reason(),
          attempt.server());
    } catch (InterruptedException interrupt) {
      throw new AssertionError(interrupt);
    }
  }

  private static final class Ignored<T> implements StreamObserver<T> {
    @Override
    public void onNext(T value) {}

    @Override
    public void onError(Throwable failure) {}

    @Override
    public void onCompleted() {}
  }

  @Test
  void whatItThrowsFailsNoCall() throws IOException {
    Consumer<Attempt> broken =
        attempt -> {
          throw new IllegalStateException("broken");
        };
    try (ScriptedServer server = new ScriptedServer();
        PolynymClient client =
            server.client().timeout(Duration.ofSeconds(20)).observer(broken).build()) {
      assertEquals("joe", client.resolve(handle("joe")).getUser().getUserId());
    }
  }
}
