package dev.polynym;

import static dev.polynym.Identifiers.handle;
import static java.util.concurrent.CompletableFuture.supplyAsync;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.polynym.errors.ClosedException;
import dev.polynym.errors.OutcomeUnknownException;
import dev.polynym.errors.PolynymException;
import dev.polynym.errors.UnavailableException;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.ExportUsersRequest;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.RegistryServiceGrpc;
import dev.polynym.v1.SearchUsersRequest;
import dev.polynym.v1.WatchRequest;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Calls while servers fail, are away, or the client is closed. */
@Timeout(60)
class OutageTest {
  private static final CreateUserRequest CREATE = CreateUserRequest.getDefaultInstance();

  @AutoClose final ScriptedServer server = new ScriptedServer();
  @AutoClose final PolynymClient client = patient(server.client());
  /** Bound without listening: connections are refused, and nobody else gets the port. */
  @AutoClose final Socket reserved = new Socket();

  OutageTest() throws IOException {
    reserved.bind(new InetSocketAddress("127.0.0.1", 0));
  }

  private static PolynymClient patient(ClientBuilder builder) {
    return builder.timeout(Duration.ofSeconds(20)).build();
  }

  private static String address(ScriptedServer server) {
    return "http://127.0.0.1:" + server.port();
  }

  private String away() {
    return "http://127.0.0.1:" + reserved.getLocalPort();
  }

  @Test
  void aCallWaitsForAServerThatIsAway() throws Exception {
    int port = reserved.getLocalPort();
    try (PolynymClient waiting = patient(PolynymClient.builder().server(away()))) {
      CompletableFuture<String> call =
          CompletableFuture.supplyAsync(() -> waiting.resolve(handle("joe")).getUser().getUserId());
      assertThrows(
          TimeoutException.class, () -> call.get(500, TimeUnit.MILLISECONDS));
      reserved.close();
      try (ScriptedServer back = new ScriptedServer(port)) {
        assertEquals("joe", call.get(20, TimeUnit.SECONDS));
        assertEquals(1, back.requests.size());
      }
    }
  }

  @Test
  void aWatchWaitsForAServerThatIsAway() throws Exception {
    int port = reserved.getLocalPort();
    WatchRequest all = WatchRequest.getDefaultInstance();
    ClientBuilder builder = PolynymClient.builder().server(away());
    try (PolynymClient hasty = builder.timeout(Duration.ofMillis(300)).build()) {
      assertThrows(UnavailableException.class, () -> hasty.watch(all));
    }
    try (PolynymClient waiting = patient(builder)) {
      CompletableFuture<Watch> begun = CompletableFuture.supplyAsync(() -> waiting.watch(all));
      assertThrows(TimeoutException.class, () -> begun.get(1, TimeUnit.SECONDS));
      reserved.close();
      try (ScriptedServer back = new ScriptedServer(port)) {
        begun.get(20, TimeUnit.SECONDS).close();
        assertEquals(1, back.requests.size());
      }
    }
  }

  @Test
  void aStreamWaitsForAServerThatIsAway() throws Exception {
    int port = reserved.getLocalPort();
    WatchRequest all = WatchRequest.getDefaultInstance();
    try (PolynymClient single = patient(PolynymClient.builder().server(away()));
        PolynymClient pair = patient(PolynymClient.builder().server(away(), away()))) {
      List<CompletableFuture<Boolean>> streams =
          Stream.of(single, pair)
              .map(client -> supplyAsync(() -> client.directory().watch(all).hasNext()))
              .toList();
      for (CompletableFuture<Boolean> stream : streams) {
        assertThrows(TimeoutException.class, () -> stream.get(500, TimeUnit.MILLISECONDS));
      }
      reserved.close();
      try (ScriptedServer back = new ScriptedServer(port)) {
        for (CompletableFuture<Boolean> stream : streams) {
          assertTrue(stream.get(20, TimeUnit.SECONDS));
        }
        assertEquals(2, back.requests.size());
      }
    }
  }

  @Test
  void aStreamFailsWithoutAServer() {
    WatchRequest all = WatchRequest.getDefaultInstance();
    String[] servers = {away(), away().replace("127.0.0.1", "localhost")};
    ClientBuilder builder = PolynymClient.builder().server(servers).timeout(Duration.ofMillis(300));
    try (PolynymClient lonely = builder.build()) {
      var stream = lonely.directory().watch(all);
      StatusRuntimeException failed = assertThrows(StatusRuntimeException.class, stream::hasNext);
      String names = String.join(", ", servers).replace("http://", "");
      assertEquals(
          "UNAVAILABLE: none of the servers " + names + " can be reached",
          PolynymException.from(failed).getMessage());
    }
  }

  @Test
  void manyLookUpsEndWithoutAServer() {
    ClientBuilder builder = PolynymClient.builder().server(away()).timeout(Duration.ofSeconds(1));
    try (PolynymClient lonely = builder.build()) {
      List<Identifier> names = IntStream.range(0, 3_000).mapToObj(n -> handle("n" + n)).toList();
      List<ResolveResult> results = lonely.resolveMany(names);
      assertInstanceOf(UnavailableException.class, results.get(0).error());
      assertSame(results.get(0).error(), results.get(2_999).error());
    }
  }

  @Test
  void aChangeThatWasNeverSentHasNotHappened() {
    String server = away();
    ClientBuilder builder = PolynymClient.builder().server(server).timeout(Duration.ofSeconds(1));
    try (PolynymClient lonely = builder.build()) {
      UnavailableException error =
          assertThrows(UnavailableException.class, () -> lonely.registry().createUser(CREATE));
      String name = server.replace("http://", "");
      assertEquals("UNAVAILABLE: the server " + name + " cannot be reached", error.getMessage());
      assertTrue(lonely.resolveMany(List.of(handle("a"))).get(0).error() != null);
    }
    try (PolynymClient hasty = patient(builder.waitForReady(false))) {
      assertThrows(UnavailableException.class, () -> hasty.registry().createUser(CREATE));
    }
  }

  @Test
  void connectingFailsIfNoServerIsThere() {
    ClientBuilder builder = PolynymClient.builder().server(away()).timeout(Duration.ofSeconds(1));
    assertThrows(UnavailableException.class, builder::connect);
    server.client().timeout(Duration.ofSeconds(20)).connect().close();
    assertEquals(0, server.requests.size());
  }

  @Test
  void aLastingOutageIsNotMetByRetries() {
    int calls = 100;
    for (int attempt = 0; attempt < 3 * calls; attempt++) {
      server.fails(Code.UNAVAILABLE);
    }
    for (int call = 0; call < calls; call++) {
      assertThrows(UnavailableException.class, () -> client.resolve(handle("joe")));
    }
    assertTrue(server.requests.size() <= 1.1 * calls, () -> "" + server.requests.size());
  }

  @Test
  void delaysOfTheServerTakeNoToken() {
    for (int call = 0; call < 10; call++) {
      server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 1);
      client.resolve(handle("joe"));
    }
    assertEquals(20, server.requests.size());
  }

  @Test
  void callsTakeTurnsAndGoOnToAnotherServer() throws Exception {
    ScriptedServer other = new ScriptedServer();
    String both = address(server) + "," + address(other);
    try (PolynymClient pair = patient(PolynymClient.builder().server(both, away()))) {
      while (server.requests.isEmpty() || other.requests.isEmpty()) {
        pair.resolve(handle("joe"));
      }
      server.requests.clear();
      other.requests.clear();
      for (int call = 0; call < 10; call++) {
        pair.resolve(handle("joe"));
      }
      assertEquals(10, server.requests.size() + other.requests.size());
      assertTrue(Math.abs(server.requests.size() - other.requests.size()) <= 2);

      other.close();
      for (int call = 0; call < 10; call++) {
        pair.registry().createUser(CREATE);
      }
      try (ScriptedServer back = new ScriptedServer(other.port())) {
        while (back.requests.isEmpty()) {
          pair.resolve(handle("joe"));
          Thread.sleep(10);
        }
      }
    }
  }

  /** The file src/test/hosts has two addresses for the name; Linux has both on its own. */
  @Test
  @EnabledOnOs(OS.LINUX)
  void allAddressesOfANameAreServers() {
    String name = "http://several.test:" + server.port();
    try (PolynymClient pair = patient(PolynymClient.builder().server(name))) {
      while (server.addresses.size() < 2) {
        pair.resolve(handle("joe"));
      }
    }
  }

  @Test
  void aRetryPrefersAnotherServer() throws Exception {
    try (ScriptedServer other = new ScriptedServer();
        PolynymClient pair = patient(server.client().server(address(server), address(other)))) {
      while (server.requests.isEmpty() || other.requests.isEmpty()) {
        pair.resolve(handle("joe"));
      }
      server.requests.clear();
      other.requests.clear();
      server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
      while (server.requests.isEmpty()) {
        other.requests.clear();
        pair.resolve(handle("joe"));
      }
      assertEquals(1, server.requests.size());
      assertEquals(1, other.requests.size());
    }
  }

  @Test
  void aClosedClientSaysSoFromAllEntrances() {
    client.resolve(handle("joe"));
    client.close();
    ClosedException closed =
        assertThrows(ClosedException.class, () -> client.resolve(handle("joe")));
    assertEquals("CANCELLED: the client is closed", closed.getMessage());
    assertThrows(ClosedException.class, () -> client.registry().createUser(CREATE));
    assertThrows(ClosedException.class, () -> client.search("").iterator().hasNext());
    assertThrows(ClosedException.class, () -> client.watch(WatchRequest.getDefaultInstance()));
    ExportUsersRequest export = ExportUsersRequest.getDefaultInstance();
    assertThrows(ClosedException.class, () -> client.admin().exportUsers(export).hasNext());
    ResolveResult one = client.resolveMany(List.of(handle("joe"))).get(0);
    assertInstanceOf(ClosedException.class, one.error());

    CompletionException async =
        assertThrows(CompletionException.class, () -> client.resolveAsync(handle("joe")).join());
    assertInstanceOf(ClosedException.class, async.getCause());
    var stub = RegistryServiceGrpc.newFutureStub(client.channel());
    Exception future = assertThrows(Exception.class, () -> stub.createUser(CREATE).get());
    assertInstanceOf(ClosedException.class, PolynymException.from(future));
    assertFalse(Thread.currentThread().isInterrupted());
  }

  @Test
  void anOpenChangeKeepsItsUnknownOutcomeWhenTheClientCloses() throws Exception {
    server.fails(Code.UNAVAILABLE);
    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 15_000);
    CompletableFuture<Throwable> failure =
        CompletableFuture.supplyAsync(
            () -> assertThrows(PolynymException.class, () -> client.registry().createUser(CREATE)));
    server.awaitRequests(2);
    client.close();
    OutcomeUnknownException unknown =
        assertInstanceOf(OutcomeUnknownException.class, failure.get(10, TimeUnit.SECONDS));
    assertFalse(unknown.requestId().isEmpty());
  }

  @Test
  void aCancelledChangeKeepsItsUnknownOutcome() throws Exception {
    server.fails(Code.UNAVAILABLE);
    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 15_000);
    CompletableFuture<Throwable> failure = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () ->
                failure.complete(
                    assertThrows(
                        PolynymException.class, () -> client.registry().createUser(CREATE))));
    thread.start();
    server.awaitRequests(2);
    thread.interrupt();
    assertInstanceOf(OutcomeUnknownException.class, failure.get(10, TimeUnit.SECONDS));
  }

  @Test
  void textsHaveNoInternalsOfLibraries() {
    for (Code code : new Code[] {Code.UNAVAILABLE, Code.INTERNAL, Code.UNIMPLEMENTED}) {
      server.fails(code);
      try (PolynymClient once = patient(server.client().maxAttempts(1))) {
        PolynymException error =
            assertThrows(
                PolynymException.class,
                () -> once.directory().searchUsers(SearchUsersRequest.getDefaultInstance()));
        assertFalse(error.getMessage().matches(".*(broken|io exception|http2|Method).*"));
      }
    }
  }
}
