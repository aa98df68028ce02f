package dev.polynym;

import dev.polynym.errors.PolynymException;
import dev.polynym.v1.AdminServiceGrpc;
import dev.polynym.v1.AdminServiceGrpc.AdminServiceBlockingStub;
import dev.polynym.v1.DirectoryServiceGrpc;
import dev.polynym.v1.DirectoryServiceGrpc.DirectoryServiceBlockingStub;
import dev.polynym.v1.Event;
import dev.polynym.v1.GetUserRequest;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.InboxServiceGrpc;
import dev.polynym.v1.InboxServiceGrpc.InboxServiceBlockingStub;
import dev.polynym.v1.ListHistoryRequest;
import dev.polynym.v1.ListHistoryResponse;
import dev.polynym.v1.RegistryServiceGrpc;
import dev.polynym.v1.RegistryServiceGrpc.RegistryServiceBlockingStub;
import dev.polynym.v1.ResolveIdentityResponse;
import dev.polynym.v1.SearchUsersRequest;
import dev.polynym.v1.SearchUsersResponse;
import dev.polynym.v1.User;
import dev.polynym.v1.WatchRequest;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * A client of one Polynym server, for all threads of a process. Every unary call has a deadline,
 * retries, and, if it changes something, a request id, so that it happens once. Errors are {@link
 * PolynymException}s.
 */
public final class PolynymClient implements AutoCloseable {
  private static final Duration CLOSE_PATIENCE = Duration.ofSeconds(5);

  private final ManagedChannel managed;
  private final Rules rules;
  private final Channel channel;
  private final DirectoryServiceBlockingStub directory;
  private final RegistryServiceBlockingStub registry;
  private final InboxServiceBlockingStub inbox;
  private final AdminServiceBlockingStub admin;
  private final Set<Watch> watches = ConcurrentHashMap.newKeySet();

  PolynymClient(ManagedChannel managed, Rules rules) {
    this.managed = managed;
    this.rules = rules;
    channel = ClientInterceptors.intercept(managed, rules);
    directory = DirectoryServiceGrpc.newBlockingStub(channel).withOption(Rules.BLOCKING, true);
    registry = RegistryServiceGrpc.newBlockingStub(channel).withOption(Rules.BLOCKING, true);
    inbox = InboxServiceGrpc.newBlockingStub(channel).withOption(Rules.BLOCKING, true);
    admin = AdminServiceGrpc.newBlockingStub(channel).withOption(Rules.BLOCKING, true);
  }

  /**
   * Makes a client with the settings of the environment: {@code POLYNYM_SERVER}, {@code
   * POLYNYM_TOKEN_FILE} and {@code POLYNYM_CA}.
   *
   * @return the client
   */
  public static PolynymClient connect() {
    return builder().build();
  }

  /**
   * Makes a client of a server, with the other settings of the environment.
   *
   * @param server such as {@code https://users:7171}
   * @return the client
   */
  public static PolynymClient connect(String server) {
    return builder().server(server).build();
  }

  /**
   * Makes a client with settings.
   *
   * @return its builder
   */
  public static ClientBuilder builder() {
    return new ClientBuilder(System.getenv());
  }

  /**
   * Returns the calls that look up.
   *
   * @return the stub
   */
  public DirectoryServiceBlockingStub directory() {
    return directory;
  }

  /**
   * Returns the calls that change users.
   *
   * @return the stub
   */
  public RegistryServiceBlockingStub registry() {
    return registry;
  }

  /**
   * Returns the calls for notices.
   *
   * @return the stub
   */
  public InboxServiceBlockingStub inbox() {
    return inbox;
  }

  /**
   * Returns the calls for administration.
   *
   * @return the stub
   */
  public AdminServiceBlockingStub admin() {
    return admin;
  }

  /**
   * Returns the channel with all rules of this client, for stubs with futures or observers, such as
   * {@code DirectoryServiceGrpc.newFutureStub(client.channel())}. Their failures are caused by a
   * {@link PolynymException}.
   *
   * @return the channel
   */
  public Channel channel() {
    return channel;
  }

  /** The look-ups with the timeout of some options. */
  DirectoryServiceBlockingStub directory(ResolveOptions options) {
    Duration timeout = options.timeout();
    if (timeout == null) {
      return directory;
    }
    return directory.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS);
  }

  /**
   * Finds the user who owns an identifier.
   *
   * @param identifier the identifier, as typed
   * @return the user, and the identity by which it was found
   * @throws PolynymException if nobody owns it, or the call fails otherwise
   */
  public ResolveIdentityResponse resolve(Identifier identifier) {
    return resolve(identifier, ResolveOptions.defaults());
  }

  /**
   * Finds the user who owns an identifier.
   *
   * @param identifier the identifier, as typed
   * @param options how to resolve it
   * @return the user, and the identity by which it was found
   * @throws PolynymException if nobody owns it, or the call fails otherwise
   */
  public ResolveIdentityResponse resolve(Identifier identifier, ResolveOptions options) {
    return directory(options).resolveIdentity(options.request(identifier));
  }

  /**
   * Finds the owners of any number of identifiers, by as few calls as possible.
   *
   * @param identifiers the identifiers, as typed
   * @return a result for each of them, in their order
   * @throws PolynymException if a call fails as a whole
   */
  public List<ResolveResult> resolveMany(Collection<Identifier> identifiers) {
    return resolveMany(identifiers, ResolveOptions.defaults());
  }

  /**
   * Finds the owners of any number of identifiers, by as few calls as possible.
   *
   * @param identifiers the identifiers, as typed
   * @param options how to resolve them; the timeout is that of each call
   * @return a result for each of them, in their order
   * @throws PolynymException if a call fails as a whole
   */
  public List<ResolveResult> resolveMany(
      Collection<Identifier> identifiers, ResolveOptions options) {
    return new BatchResolver(this, options, List.copyOf(identifiers)).resolve();
  }

  /**
   * Gets a user by id.
   *
   * @param userId the user's id
   * @return the user; for a merged one, its primary
   * @throws PolynymException if the user does not exist, or the call fails otherwise
   */
  public User getUser(String userId) {
    return directory.getUser(GetUserRequest.newBuilder().setUserId(userId).build()).getUser();
  }

  /**
   * Searches users.
   *
   * @param filter such as {@code attributes.team = "search"}; empty for all users
   * @return the users of all pages
   */
  public Pages<User> search(String filter) {
    return search(SearchUsersRequest.newBuilder().setFilter(filter).build());
  }

  /**
   * Searches users.
   *
   * @param request filter, order, fields, and the size of a page
   * @return the users of all pages
   */
  public Pages<User> search(SearchUsersRequest request) {
    return new Pages<>(
        request.getPageToken(),
        token -> {
          SearchUsersResponse page =
              directory.searchUsers(request.toBuilder().setPageToken(token).build());
          return new Pages.Page<>(page.getUsersList(), page.getNextPageToken());
        });
  }

  /**
   * Lists the history of a user, newest first.
   *
   * @param userId the user's id
   * @return the events of all pages
   */
  public Pages<Event> history(String userId) {
    return history(ListHistoryRequest.newBuilder().setUserId(userId).build());
  }

  /**
   * Lists the history of a user, newest first.
   *
   * @param request the user, the period, the types, and the size of a page
   * @return the events of all pages
   */
  public Pages<Event> history(ListHistoryRequest request) {
    return new Pages<>(
        request.getPageToken(),
        token -> {
          ListHistoryResponse page =
              directory.listHistory(request.toBuilder().setPageToken(token).build());
          return new Pages.Page<>(page.getEventsList(), page.getNextPageToken());
        });
  }

  /**
   * Watches events. Returns once the watch has begun: changes that are acknowledged later are among
   * its events.
   *
   * @param request the users and types to watch, and the token to resume from, if any
   * @return the events; close it to end the watch
   * @throws PolynymException if the watch cannot begin
   */
  public Watch watch(WatchRequest request) {
    Watch watch = new Watch(directory, request, rules, watches::remove);
    watches.add(watch);
    watch.begin();
    return watch;
  }

  /** Ends the client and its watches. Calls under way have 5 seconds to finish. */
  @Override
  public void close() {
    watches.forEach(Watch::close);
    managed.shutdown();
    rules.timers().shutdown();
    try {
      if (!managed.awaitTermination(CLOSE_PATIENCE.toNanos(), TimeUnit.NANOSECONDS)) {
        managed.shutdownNow();
      }
    } catch (InterruptedException interrupt) {
      managed.shutdownNow();
      Thread.currentThread().interrupt();
    }
  }
}
