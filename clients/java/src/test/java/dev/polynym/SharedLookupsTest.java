package dev.polynym;

import static dev.polynym.Identifiers.handle;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Message;
import dev.polynym.errors.DeadlineExceededException;
import dev.polynym.errors.NotFoundException;
import dev.polynym.errors.PermissionDeniedException;
import dev.polynym.errors.PolynymException;
import dev.polynym.errors.UnavailableException;
import dev.polynym.v1.BatchResolveIdentitiesRequest;
import dev.polynym.v1.BatchResolveIdentitiesResponse;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Result;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.ResolveIdentityRequest;
import dev.polynym.v1.ResolveIdentityResponse;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.Context;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status.Code;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Look-ups that share calls, one after another or in a list. */
@Timeout(60)
class SharedLookupsTest {
  @AutoClose final ScriptedServer server = new ScriptedServer();

  @AutoClose
  final PolynymClient client = builder().stalledAfter(Duration.ofMinutes(1)).connect();

  @AutoClose final PolynymClient usual = builder().connect();

  SharedLookupsTest() throws IOException {}

  @AfterEach
  void endOpenCalls() {
    server.endOpenCalls();
  }

  private ClientBuilder builder() {
    return server.client().timeout(Duration.ofSeconds(20));
  }

  /** Begins two calls, so that look-ups that follow go together once one of these has ended. */
  private List<CompletableFuture<Void>> occupy(PolynymClient client) throws InterruptedException {
    List<CompletableFuture<Void>> calls = List.of(server.waits(), server.waits());
    client.resolveAsync(handle("first"));
    client.resolveAsync(handle("second"));
    server.awaitRequests(2);
    return calls;
  }

  /** Ends one of the calls, so that one batch goes; the other one ends later. */
  private static void release(List<CompletableFuture<Void>> calls) {
    calls.get(0).complete(null);
  }

  private List<CompletableFuture<ResolveIdentityResponse>> lookUp(PolynymClient client, int count) {
    List<CompletableFuture<ResolveIdentityResponse>> calls = new ArrayList<>();
    IntStream.range(0, count).forEach(n -> calls.add(client.resolveAsync(handle("n" + n))));
    return calls;
  }

  private static void assertFound(List<CompletableFuture<ResolveIdentityResponse>> calls) {
    for (int n = 0; n < calls.size(); n++) {
      assertEquals("n" + n, calls.get(n).join().getUser().getUserId());
    }
  }

  private List<Integer> batches() {
    return server.requests.stream()
        .map(SharedLookupsTest::size)
        .toList();
  }

  private static int size(Message request) {
    boolean batch = request instanceof BatchResolveIdentitiesRequest;
    return batch ? ((BatchResolveIdentitiesRequest) request).getIdentifiersCount() : 1;
  }

  private static Result refused(Code code, String reason, int retryMillis) {
    var error = ScriptedServer.status(code, reason, retryMillis, Map.of());
    return Result.newBuilder().setError(error).build();
  }

  private static BatchResolveIdentitiesResponse items(Result... items) {
    return BatchResolveIdentitiesResponse.newBuilder().addAllResults(List.of(items)).build();
  }

  @Test
  void lookUpsThatWaitGoTogether() throws Exception {
    List<CompletableFuture<Void>> first = occupy(client);
    List<CompletableFuture<ResolveIdentityResponse>> calls = lookUp(client, 50);
    CompletableFuture<String> blocking =
        CompletableFuture.supplyAsync(() -> client.resolve(handle("b")).getUser().getUserId());
    release(first);
    assertFound(calls);
    assertEquals("b", blocking.join());
    assertTrue(server.requests.size() <= 5, () -> batches().toString());
  }

  @Test
  void aSlowCallHoldsUpNoOthers() throws Exception {
    occupy(usual);
    assertFound(lookUp(usual, 10));
  }

  @Test
  void theLookUpsOfAFailedCallGoAlone() throws Exception {
    List<CompletableFuture<Void>> first = occupy(client);
    server.fails(Code.UNAVAILABLE);
    List<CompletableFuture<ResolveIdentityResponse>> calls = lookUp(client, 40);
    release(first);
    assertFound(calls);
    assertEquals(1 + 1 + 1 + 40, server.requests.size(), () -> batches().toString());
  }

  @Test
  void aLookUpLeavesACallWithoutAnAnswerAtHalfOfItsTime() throws Exception {
    occupy(usual);
    server.isSilent();
    ResolveOptions hasty = ResolveOptions.defaults().timeout(Duration.ofSeconds(4));
    var joe = usual.resolveAsync(handle("joe"), hasty);
    var ann = usual.resolveAsync(handle("ann"), hasty);
    assertEquals("joe", joe.join().getUser().getUserId());
    assertEquals("ann", ann.join().getUser().getUserId());
    assertInstanceOf(ResolveIdentityRequest.class, server.requests.get(3));
  }

  @Test
  void aLookUpStaysWithACallOfItsOwnUntilItsDeadline() throws Exception {
    occupy(usual);
    server.isSilent();
    ResolveOptions hasty = ResolveOptions.defaults().timeout(Duration.ofSeconds(1));
    var joe = usual.resolveAsync(handle("joe"), hasty);
    CompletionException failed = assertThrows(CompletionException.class, joe::join);
    assertInstanceOf(DeadlineExceededException.class, failed.getCause());
    assertEquals(3, server.requests.size());
  }

  @Test
  void whatAnInterceptorThrowsHoldsUpNothing() throws Exception {
    Throwing throwing = new Throwing(new AtomicBoolean());
    ClientBuilder builder = builder().intercept(throwing).stalledAfter(Duration.ofMinutes(1));
    try (PolynymClient broken = builder.build()) {
      List<CompletableFuture<Void>> first = occupy(broken);
      List<CompletableFuture<ResolveIdentityResponse>> shared = lookUp(broken, 40);
      throwing.now.set(true);
      release(first);
      shared.forEach(SharedLookupsTest::assertBroken);
      lookUp(broken, 10).forEach(SharedLookupsTest::assertBroken);
      assertThrows(PolynymException.class, () -> broken.resolve(handle("joe")));

      throwing.now.set(false);
      assertFound(lookUp(broken, 40));
      first.get(1).complete(null);
    }
  }

  private static void assertBroken(CompletableFuture<ResolveIdentityResponse> call) {
    Throwable failed = assertThrows(CompletionException.class, call::join).getCause();
    assertEquals("UNKNOWN: the call cannot be sent", failed.getMessage());
  }

  /** Throws when a call begins, now and then. */
  private record Throwing(AtomicBoolean now) implements ClientInterceptor {
    @Override
    public <Q, A> ClientCall<Q, A> interceptCall(
        MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<A> listener, Metadata headers) {
          if (now.get()) {
            throw new IllegalStateException("broken");
          }
          super.start(listener, headers);
        }
      };
    }
  }

  @Test
  void whatIsRefusedInABatchGoesAlone() throws Exception {
    List<CompletableFuture<Void>> first = occupy(client);
    server.answers(
        items(
            ScriptedServer.found("n0"),
            refused(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 20),
            refused(Code.RESOURCE_EXHAUSTED, "ANSWER_TOO_LARGE", 0),
            refused(Code.NOT_FOUND, "IDENTITY_NOT_FOUND", 0)));
    List<CompletableFuture<ResolveIdentityResponse>> calls = lookUp(client, 4);
    release(first);
    assertFound(calls.subList(0, 3));
    CompletionException failed = assertThrows(CompletionException.class, calls.get(3)::join);
    assertInstanceOf(NotFoundException.class, failed.getCause());
    assertEquals(5, server.requests.size(), () -> batches().toString());
  }

  @Test
  void theNumberOfResultsIsChecked() throws Exception {
    List<CompletableFuture<Void>> first = occupy(client);
    server.answers(items(ScriptedServer.found("n0")));
    List<CompletableFuture<ResolveIdentityResponse>> calls = lookUp(client, 2);
    release(first);
    CompletionException failed = assertThrows(CompletionException.class, calls.get(0)::join);
    assertEquals(Code.INTERNAL, PolynymException.from(failed).code());

    server.answers(items(ScriptedServer.found("n0")));
    List<ResolveResult> many = client.resolveMany(List.of(handle("n0"), handle("n1")));
    assertEquals(Code.INTERNAL, many.get(0).error().code());
  }

  @Test
  void theLimitOfTheServerIsLearned() throws Exception {
    server.fails(Code.INVALID_ARGUMENT, "BATCH_TOO_LARGE", Map.of("limit", "3"));
    List<Identifier> names = IntStream.range(0, 7).mapToObj(n -> handle("n" + n)).toList();
    client.resolveMany(names).forEach(ResolveResult::orThrow);
    assertEquals(List.of(7, 3, 3, 1), batches());

    server.requests.clear();
    List<CompletableFuture<Void>> first = occupy(client);
    List<CompletableFuture<ResolveIdentityResponse>> calls = lookUp(client, 6);
    release(first);
    assertFound(calls);
    assertTrue(batches().stream().allMatch(size -> size <= 3), () -> batches().toString());
  }

  @Test
  void aSharedCallThatIsTooLargeIsSplit() throws Exception {
    List<CompletableFuture<Void>> first = occupy(client);
    server.fails(Code.INVALID_ARGUMENT, "BATCH_TOO_LARGE", Map.of("limit", "4"));
    List<CompletableFuture<ResolveIdentityResponse>> calls = lookUp(client, 6);
    release(first);
    assertFound(calls);
    assertEquals(List.of(1, 1, 6), batches().subList(0, 3));
    assertEquals(6, batches().stream().skip(3).mapToInt(size -> size).sum());
  }

  @Test
  void aCallerThatLeavesEndsItsLookUp() throws Exception {
    List<CompletableFuture<Void>> first = occupy(client);
    List<CompletableFuture<ResolveIdentityResponse>> calls = lookUp(client, 3);
    assertTrue(calls.get(1).cancel(true));
    release(first);
    assertEquals("n0", calls.get(0).join().getUser().getUserId());
    assertEquals("n2", calls.get(2).join().getUser().getUserId());
    assertTrue(calls.get(1).isCancelled());
  }

  @Test
  void aContextThatEndsEndsItsLookUp() throws Exception {
    List<CompletableFuture<Void>> first = occupy(client);
    Context.CancellableContext context = Context.current().withCancellation();
    List<CompletableFuture<ResolveIdentityResponse>> calls = new ArrayList<>();
    context.run(() -> calls.add(client.resolveAsync(handle("n0"))));
    calls.add(client.resolveAsync(handle("n1")));
    context.cancel(null);
    assertTrue(calls.get(0).isCancelled());
    release(first);
    assertEquals("n1", calls.get(1).join().getUser().getUserId());
  }

  @Test
  void manyKeepTheAnswersOfOtherRequests() {
    List<Identifier> names = IntStream.range(0, 2_500).mapToObj(n -> handle("n" + n)).toList();
    try (PolynymClient once = server.client().maxAttempts(1).build()) {
      server.answers(found(0, 1_000));
      server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
      List<ResolveResult> results = once.resolveMany(names);
      assertNull(results.get(999).error());
      assertInstanceOf(UnavailableException.class, results.get(1_000).error());
      assertNull(results.get(2_000).error());

      server.answers(found(0, 1_000));
      server.fails(Code.PERMISSION_DENIED, "ROLE_DENIED");
      results = once.resolveMany(names);
      assertNull(results.get(999).error());
      assertInstanceOf(PermissionDeniedException.class, results.get(2_499).error());
    }
    assertEquals(List.of(1_000, 1_000, 500, 1_000, 1_000), batches());
  }

  private static BatchResolveIdentitiesResponse found(int from, int to) {
    var names = IntStream.range(from, to).mapToObj(n -> "n" + n);
    return items(names.map(ScriptedServer::found).toArray(Result[]::new));
  }

  @Test
  void manyAskAgainForWhatWasRefused() {
    server.answers(
        items(
            ScriptedServer.found("a"),
            refused(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 50),
            refused(Code.RESOURCE_EXHAUSTED, "OVERLOADED", 100)));
    long start = System.nanoTime();
    List<ResolveResult> results =
        client.resolveMany(List.of(handle("a"), handle("b"), handle("c")));
    assertEquals("c", results.get(2).orThrow().getUser().getUserId());
    assertEquals(List.of(3, 2), batches());
    assertTrue(System.nanoTime() - start >= TimeUnit.MILLISECONDS.toNanos(100));
  }

  @Test
  void manyHaveThreeAttemptsInAllRounds() {
    server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE");
    for (int round = 0; round < 8; round++) {
      server.answers(items(refused(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 1)));
    }
    ResolveResult only = client.resolveMany(List.of(handle("a"))).get(0);
    assertInstanceOf(UnavailableException.class, only.error());
    assertEquals(3, server.requests.size());
  }

  @Test
  void optionsSeparateLookUps() throws Exception {
    List<CompletableFuture<Void>> first = occupy(client);
    var other = client.resolveAsync(handle("joe"), ResolveOptions.defaults().showDisabled());
    assertEquals("joe", other.join().getUser().getUserId());
    assertEquals(3, server.requests.size());
    release(first);
  }
}
