package dev.polynym;

import static dev.polynym.Identifiers.email;
import static dev.polynym.Identifiers.handle;
import static dev.polynym.Identifiers.phone;
import static dev.polynym.Identifiers.social;
import static dev.polynym.Identifiers.url;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.util.concurrent.ListenableFuture;
import dev.polynym.errors.AlreadyExistsException;
import dev.polynym.errors.DeadlineExceededException;
import dev.polynym.errors.InvalidArgumentException;
import dev.polynym.errors.NotFoundException;
import dev.polynym.errors.PolynymException;
import dev.polynym.testing.PolynymServer;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.DirectoryServiceGrpc;
import dev.polynym.v1.DisableUserRequest;
import dev.polynym.v1.Event;
import dev.polynym.v1.EventType;
import dev.polynym.v1.ExportUsersRequest;
import dev.polynym.v1.FindUsersRequest;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.Identity;
import dev.polynym.v1.ListAttributeNamesRequest;
import dev.polynym.v1.ListBulkChangesRequest;
import dev.polynym.v1.ListEventsRequest;
import dev.polynym.v1.ListHistoryRequest;
import dev.polynym.v1.ListNoticesRequest;
import dev.polynym.v1.ListTenantHistoryRequest;
import dev.polynym.v1.ListTenantsRequest;
import dev.polynym.v1.Policies;
import dev.polynym.v1.RegistryServiceGrpc;
import dev.polynym.v1.ResolveIdentityRequest;
import dev.polynym.v1.ResolveIdentityResponse;
import dev.polynym.v1.SearchUsersRequest;
import dev.polynym.v1.SendNoticeRequest;
import dev.polynym.v1.State;
import dev.polynym.v1.UpdateTenantRequest;
import dev.polynym.v1.User;
import dev.polynym.v1.WatchRequest;
import io.grpc.Status.Code;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@RequiresServer
@Timeout(60)
class ClientTest {
  @AutoClose static final PolynymServer server = PolynymServer.start();

  @AutoClose final PolynymClient client = inTenant("default");

  private static User create(PolynymClient client, Identifier... identifiers) {
    User.Builder user = User.newBuilder();
    for (Identifier identifier : identifiers) {
      user.addIdentities(Identity.newBuilder().setIdentifier(identifier));
    }
    return client.registry().createUser(createRequest(user)).getUser();
  }

  private static CreateUserRequest createRequest(User.Builder user) {
    return CreateUserRequest.newBuilder().setUser(user).build();
  }

  /** A client for a busy machine. */
  private static PolynymClient inTenant(String tenant) {
    ClientBuilder builder = PolynymClient.builder().server(server.address()).tenant(tenant);
    return builder.timeout(Duration.ofSeconds(20)).build();
  }

  @Test
  void anyNameLeadsToTheUser() {
    Identifier[] names = {
      email("Any.Name@Example.com"),
      handle("@any_name"),
      phone("(415) 555-2671", "US"),
      social("GitHub", "583231"),
      url("https://example.com/any?x"),
    };
    User user = create(client, names);
    for (Identifier name : names) {
      assertEquals(user.getUserId(), client.resolve(name).getUser().getUserId());
    }
    assertEquals(user, client.getUser(user.getUserId()));
    assertEquals(user, client.resolve(phone("+1 415 555 2671")).getUser());
  }

  @Test
  void errorsHaveATypeAReasonAndAField() {
    User owner = create(client, handle("taken"));
    NotFoundException missing =
        assertThrows(NotFoundException.class, () -> client.resolve(handle("nobody")));
    assertEquals("IDENTITY_NOT_FOUND", missing.reason());
    assertEquals(Code.NOT_FOUND, missing.code());

    InvalidArgumentException invalid =
        assertThrows(InvalidArgumentException.class, () -> client.resolve(email("no-address")));
    assertEquals("identifier", invalid.field());
    PolynymException item =
        client.resolveMany(List.of(handle("taken"), email("no-address"))).get(1).error();
    assertEquals(List.of("identifier", invalid.toString()), List.of(item.field(), item.toString()));

    AlreadyExistsException taken =
        assertThrows(AlreadyExistsException.class, () -> create(client, handle("Taken")));
    assertEquals(owner.getUserId(), taken.owner());
    assertFalse(taken.requestId().isEmpty());
    assertFalse(taken.getMessage().toLowerCase().contains("taken"));
  }

  @Test
  void optionsReachTheServer() {
    User user = create(client, handle("optional"), email("optional@example.com"));
    client.registry().disableUser(byId(user));
    assertThrows(PolynymException.class, () -> client.resolve(handle("optional")));

    ResolveOptions options = ResolveOptions.defaults().showDisabled().fields("user_id", "state");
    User shown = client.resolve(handle("optional"), options).getUser();
    assertEquals(State.STATE_DISABLED, shown.getState());
    assertEquals(0, shown.getIdentitiesCount());

    ResolveOptions elsewhere = ResolveOptions.defaults().tenant("elsewhere");
    assertThrows(NotFoundException.class, () -> client.resolve(handle("optional"), elsewhere));
    ResolveOptions hasty = ResolveOptions.defaults().timeout(Duration.ofNanos(1));
    assertThrows(
        DeadlineExceededException.class, () -> client.resolve(handle("optional"), hasty));
  }

  private static DisableUserRequest byId(User user) {
    return DisableUserRequest.newBuilder().setUserId(user.getUserId()).build();
  }

  @Test
  void aClientHasATenant() {
    try (PolynymClient europe = inTenant("europe")) {
      assertEquals("europe", create(europe, handle("european")).getTenant());
      assertEquals("europe", europe.resolve(handle("european")).getUser().getTenant());
      assertThrows(NotFoundException.class, () -> client.resolve(handle("european")));
    }
  }

  @Test
  void manyIdentifiersResolveInTheirOrder() {
    try (PolynymClient many = inTenant("many")) {
      User user = create(many, handle("found"));
      List<Identifier> names = new ArrayList<>();
      IntStream.range(0, 2_100).forEach(n -> names.add(handle(n % 7 == 0 ? "found" : "n" + n)));
      List<ResolveResult> results = many.resolveMany(names);

      assertEquals(names.size(), results.size());
      for (int n = 0; n < names.size(); n++) {
        ResolveResult result = results.get(n);
        if (n % 7 == 0) {
          assertEquals(user, result.orThrow().getUser());
        } else {
          assertInstanceOf(NotFoundException.class, result.error());
        }
      }
      assertEquals(List.of(), many.resolveMany(List.of()));
    }
  }

  @Test
  void searchAndHistoryHaveAllPages() {
    try (PolynymClient pages = inTenant("pages")) {
      List<String> ids = new ArrayList<>();
      IntStream.range(0, 25).forEach(n -> ids.add(create(pages, handle("p" + n)).getUserId()));
      SearchUsersRequest all = SearchUsersRequest.newBuilder().setPageSize(10).build();
      List<String> found = pages.search(all).stream().map(User::getUserId).toList();
      assertEquals(25, found.size());
      assertEquals(new HashSet<>(ids), new HashSet<>(found));
      assertEquals(1, pages.search("identities.handle = \"p7\"").stream().count());
      Pages<User> malformed = pages.search("display_name =");
      assertThrows(InvalidArgumentException.class, () -> malformed.iterator().hasNext());

      pages.registry().disableUser(DisableUserRequest.newBuilder().setUserId(ids.get(0)).build());
      ListHistoryRequest history =
          ListHistoryRequest.newBuilder().setUserId(ids.get(0)).setPageSize(1).build();
      List<Boolean> disabled =
          pages.history(history).stream().map(Event::hasUserDisabled).toList();
      assertEquals(List.of(true, false), disabled);
      assertEquals(2, pages.history(ids.get(0)).stream().count());
    }
  }

  @Test
  void everyListHasAllPages() {
    try (PolynymClient lists = inTenant("lists")) {
      IntStream.range(0, 5).forEach(n -> create(lists, handle("l" + n)));
      String id = lists.resolve(handle("l0")).getUser().getUserId();
      lists.registry().disableUser(DisableUserRequest.newBuilder().setUserId(id).build());
      assertEquals(2, count(lists.lists().find(
          FindUsersRequest.newBuilder().setText("@l0, @l1").setPageSize(1).build())));
      assertEquals(6, count(lists.lists().events(
          ListEventsRequest.newBuilder().setPageSize(2).build())));
      assertEquals(0, count(lists.lists().attributeNames(
          ListAttributeNamesRequest.getDefaultInstance())));
      assertEquals(1, count(lists.lists().tenants(ListTenantsRequest.getDefaultInstance())));
      assertEquals(1, count(lists.lists().tenantHistory(
          ListTenantHistoryRequest.newBuilder().setPageSize(1).build())));
      assertEquals(0, count(lists.lists().bulkChanges(
          ListBulkChangesRequest.getDefaultInstance())));

      SendNoticeRequest.Builder notice = SendNoticeRequest.newBuilder();
      notice.addRecipientsBuilder().setUserId(id);
      notice.getNoticeBuilder().setSubject("Welcome");
      IntStream.range(0, 3).forEach(n -> lists.inbox().sendNotice(notice.build()));
      assertEquals(3, count(lists.lists().notices(
          ListNoticesRequest.newBuilder().setUserId(id).setPageSize(2).build())));
    }
  }

  private static long count(Pages<?> pages) {
    return pages.stream().count();
  }

  @Test
  void aUserIsCreatedOnce() throws Exception {
    try (PolynymClient once = inTenant("once")) {
      User joe = User.newBuilder().setDisplayName("Joe").build();
      List<CompletableFuture<GetOrCreateResult>> calls = new ArrayList<>();
      ExecutorService threads = Executors.newFixedThreadPool(32);
      for (int caller = 0; caller < 32; caller++) {
        calls.add(
            CompletableFuture.supplyAsync(() -> once.getOrCreate(handle("joe"), joe), threads));
      }
      Set<String> ids = new HashSet<>();
      calls.forEach(call -> ids.add(call.join().user().getUserId()));
      assertEquals(1, ids.size());
      assertEquals(1, calls.stream().filter(call -> call.join().created()).count());
      threads.shutdown();

      User twin = User.newBuilder().addIdentities(identity(handle("joe"))).build();
      assertFalse(once.getOrCreate(handle("joe"), twin).created());
      assertThrows(AlreadyExistsException.class, () -> once.getOrCreate(handle("ann"), twin));
    }
  }

  private static Identity identity(Identifier identifier) {
    return Identity.newBuilder().setIdentifier(identifier).build();
  }

  @Test
  void anyUnaryCallCanBeAsynchronous() {
    CreateUserRequest request =
        createRequest(User.newBuilder().addIdentities(identity(handle("async"))));
    String id =
        client
            .callAsync(RegistryServiceGrpc.getCreateUserMethod(), request)
            .thenCompose(created -> client.resolveAsync(handle("async")))
            .thenApply(found -> found.getUser().getUserId())
            .join();
    assertEquals(id, client.resolve(handle("async")).getUser().getUserId());
    var taken = client.callAsync(RegistryServiceGrpc.getCreateUserMethod(), request);
    CompletionException failed = assertThrows(CompletionException.class, taken::join);
    assertInstanceOf(AlreadyExistsException.class, failed.getCause());
    var streams = DirectoryServiceGrpc.getWatchMethod();
    WatchRequest watch = WatchRequest.getDefaultInstance();
    assertThrows(IllegalArgumentException.class, () -> client.callAsync(streams, watch));
  }

  @Test
  void futuresObserversAndStreamsReportTypedErrors() throws Exception {
    ResolveIdentityRequest request =
        ResolveIdentityRequest.newBuilder().setIdentifier(handle("nobody")).build();
    ListenableFuture<ResolveIdentityResponse> future =
        DirectoryServiceGrpc.newFutureStub(client.channel()).resolveIdentity(request);
    ExecutionException failed = assertThrows(ExecutionException.class, future::get);
    assertInstanceOf(NotFoundException.class, PolynymException.from(failed));

    CompletableFuture<Throwable> observed = new CompletableFuture<>();
    DirectoryServiceGrpc.newStub(client.channel()).resolveIdentity(request, errorTo(observed));
    Throwable error = observed.get(10, TimeUnit.SECONDS);
    assertInstanceOf(NotFoundException.class, PolynymException.from(error));

    ExportUsersRequest export = ExportUsersRequest.newBuilder().setTenant("no tenant").build();
    RuntimeException refused =
        assertThrows(RuntimeException.class, () -> client.admin().exportUsers(export).hasNext());
    PolynymException typed =
        assertInstanceOf(InvalidArgumentException.class, PolynymException.from(refused));
    assertEquals("TENANT_INVALID", typed.reason());
  }

  private static <T> StreamObserver<T> errorTo(CompletableFuture<Throwable> error) {
    return new StreamObserver<>() {
      @Override
      public void onNext(T value) {}

      @Override
      public void onError(Throwable failure) {
        error.complete(failure);
      }

      @Override
      public void onCompleted() {
        error.completeExceptionally(new AssertionError("the call succeeded"));
      }
    };
  }

  @Test
  void aWatchHasTheEventsOfItsTenantUntilItIsClosed() throws Exception {
    try (PolynymClient watched = inTenant("watched")) {
      UpdateTenantRequest tenant =
          UpdateTenantRequest.newBuilder().setPolicies(Policies.getDefaultInstance()).build();
      watched.admin().updateTenant(tenant);
      Watch watch = watched.watch(WatchRequest.getDefaultInstance());
      User joe = create(watched, handle("joe"));
      WatchEvent created = watch.next();
      assertEquals(joe.getUserId(), created.event().getUserId());
      assertTrue(created.event().hasUserCreated());
      assertEquals(EventType.EVENT_TYPE_USER_CREATED, created.type());
      assertEquals(created.resumeToken(), watch.resumeToken());

      watched.registry().disableUser(byId(joe));
      CompletableFuture<List<WatchEvent>> rest = CompletableFuture.supplyAsync(() -> rest(watch));
      String token = created.resumeToken();
      WatchRequest resumed = WatchRequest.newBuilder().setResumeToken(token).build();
      try (Watch again = watched.watch(resumed)) {
        assertTrue(again.next().event().hasUserDisabled());
      }
      watch.close();
      rest.get(10, TimeUnit.SECONDS);
      assertFalse(watch.hasNext());

      WatchRequest nonsense = WatchRequest.newBuilder().setResumeToken("nonsense").build();
      PolynymException refused =
          assertThrows(InvalidArgumentException.class, () -> watched.watch(nonsense));
      assertEquals("RESUME_TOKEN_INVALID", refused.reason());
    }
  }

  @Test
  void aClosedClientEndsItsWatches() throws Exception {
    PolynymClient closing = inTenant("closing");
    create(closing, handle("joe"));
    Watch watch = closing.watch(WatchRequest.getDefaultInstance());
    CompletableFuture<List<WatchEvent>> rest = CompletableFuture.supplyAsync(() -> rest(watch));
    closing.close();
    assertEquals(List.of(), rest.get(10, TimeUnit.SECONDS));
  }

  private static List<WatchEvent> rest(Watch watch) {
    List<WatchEvent> events = new ArrayList<>();
    watch.forEach(events::add);
    return events;
  }
}
