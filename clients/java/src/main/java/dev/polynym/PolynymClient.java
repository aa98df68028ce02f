package dev.polynym;

import dev.polynym.errors.PolynymException;
import dev.polynym.internal.CallFuture;
import dev.polynym.internal.Rules;
import dev.polynym.v1.AdminServiceGrpc.AdminServiceBlockingStub;
import dev.polynym.v1.AdminServiceGrpc;
import dev.polynym.v1.DirectoryServiceGrpc.DirectoryServiceBlockingStub;
import dev.polynym.v1.DirectoryServiceGrpc;
import dev.polynym.v1.Event;
import dev.polynym.v1.GetUserRequest;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.InboxServiceGrpc.InboxServiceBlockingStub;
import dev.polynym.v1.InboxServiceGrpc;
import dev.polynym.v1.ListHistoryRequest;
import dev.polynym.v1.NormalizeIdentityRequest;
import dev.polynym.v1.RegistryServiceGrpc.RegistryServiceBlockingStub;
import dev.polynym.v1.RegistryServiceGrpc;
import dev.polynym.v1.ResolveIdentityResponse;
import dev.polynym.v1.SearchUsersRequest;
import dev.polynym.v1.User;
import dev.polynym.v1.WatchRequest;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Deadline;
import io.grpc.MethodDescriptor;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A client of a Polynym server, or of several with one store, for all threads of a process. Every
 * unary call has a deadline, retries, and, if it changes something, a request id, so that it
 * happens once. Errors are {@link PolynymException}s.
 */
public final class PolynymClient implements AutoCloseable {
  private static final Duration CLOSE_PATIENCE = Duration.ofSeconds(5);

  private final Rules rules;
  private final Batches batches = new Batches();
  private final @Nullable SharedLookups shared;
  private final DirectoryServiceBlockingStub directory;
  private final RegistryServiceBlockingStub registry;
  private final InboxServiceBlockingStub inbox;
  private final AdminServiceBlockingStub admin;
  private final Set<Watch> watches = ConcurrentHashMap.newKeySet();

  PolynymClient(Rules rules, boolean batching, Duration stalledAfter) {
    this.rules = rules;
    shared = batching ? new SharedLookups(rules, batches, stalledAfter) : null;
    directory = DirectoryServiceGrpc.newBlockingStub(rules).withOption(Rules.BLOCKING, true);
    registry = RegistryServiceGrpc.newBlockingStub(rules).withOption(Rules.BLOCKING, true);
    inbox = InboxServiceGrpc.newBlockingStub(rules).withOption(Rules.BLOCKING, true);
    admin = AdminServiceGrpc.newBlockingStub(rules).withOption(Rules.BLOCKING, true);
  }

  /**
   * Connects with the settings of the environment: {@code POLYNYM_SERVER}, {@code
   * POLYNYM_TOKEN_FILE} and {@code POLYNYM_CA}.
   *
   * @return the client
   * @throws PolynymException if no server can be reached
   * @see ClientBuilder#connect
   */
  public static PolynymClient connect() {
    return builder().connect();
  }

  /**
   * Connects to a server, with the other settings of the environment.
   *
   * @param server such as {@code https://users:7171}, or a list of several, with commas
   * @return the client
   * @throws PolynymException if no server can be reached
   * @see ClientBuilder#connect
   */
  public static PolynymClient connect(String server) {
    return builder().server(server).connect();
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
    return rules;
  }

  /** Connects now. A call that asks for nothing makes the classes of later calls ready. */
  void connectNow() {
    Deadline deadline = Deadline.after(rules.timeout().toNanos(), TimeUnit.NANOSECONDS);
    boolean decided = rules.servers().connect(deadline);
    try {
      // It has its own time: the first connection of a process has used up some, to load classes.
      Duration time = decided ? rules.timeout() : Duration.ofMillis(1);
      directory
          .withDeadlineAfter(time.toNanos(), TimeUnit.NANOSECONDS)
          .normalizeIdentity(NormalizeIdentityRequest.getDefaultInstance());
    } catch (PolynymException failure) {
      if (failure.reason().isEmpty() && !rules.servers().isConnected()) {
        throw failure;
      }
    }
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
    Supplier<ResolveIdentityResponse> alone =
        () -> directory(options).resolveIdentity(options.request(identifier));
    return shared == null || !isShareable(identifier, options)
        ? alone.get()
        : shared.resolve(identifier, options, alone);
  }

  private static boolean isShareable(Identifier identifier, ResolveOptions options) {
    return options.isShareable() && Batches.fits(Batches.size(identifier));
  }

  /**
   * Finds the user who owns an identifier, without blocking.
   *
   * @param identifier the identifier, as typed
   * @return the user and the identity, or a {@link PolynymException}; cancelling it ends the call
   */
  public CompletableFuture<ResolveIdentityResponse> resolveAsync(Identifier identifier) {
    return resolveAsync(identifier, ResolveOptions.defaults());
  }

  /**
   * Finds the user who owns an identifier, without blocking. Stages that depend on the future
   * should not block, unless they have an executor of their own, as by {@code thenApplyAsync}.
   *
   * @param identifier the identifier, as typed
   * @param options how to resolve it
   * @return the user and the identity, or a {@link PolynymException}; cancelling it ends the call
   */
  public CompletableFuture<ResolveIdentityResponse> resolveAsync(
      Identifier identifier, ResolveOptions options) {
    CallOptions call = CallOptions.DEFAULT.withDeadline(options.deadline(rules.timeout()));
    Supplier<CallFuture<ResolveIdentityResponse>> alone =
        () ->
            CallFuture.start(
                rules.newCall(DirectoryServiceGrpc.getResolveIdentityMethod(), call),
                options.request(identifier));
    return shared == null || !isShareable(identifier, options)
        ? alone.get()
        : shared.resolveAsync(identifier, options, alone);
  }

  /**
   * Makes any unary call without blocking, such as {@code
   * callAsync(RegistryServiceGrpc.getCreateUserMethod(), request)}.
   *
   * @param <Q> the type of the request
   * @param <A> the type of the answer
   * @param method the method, of a generated class
   * @param request the request
   * @return the answer, or a {@link PolynymException}; cancelling it ends the call
   */
  public <Q, A> CompletableFuture<A> callAsync(MethodDescriptor<Q, A> method, Q request) {
    if (method.getType() != MethodDescriptor.MethodType.UNARY) {
      throw new IllegalArgumentException("the method has streams: use a stub of channel()");
    }
    return CallFuture.start(rules.newCall(method, CallOptions.DEFAULT), request);
  }

  /**
   * Finds the owners of any number of identifiers, by as few calls as possible.
   *
   * @param identifiers the identifiers, as typed
   * @return a result for each of them, in their order; the failure of a call is that of its items
   */
  public List<ResolveResult> resolveMany(Collection<Identifier> identifiers) {
    return resolveMany(identifiers, ResolveOptions.defaults());
  }

  /**
   * Finds the owners of any number of identifiers, by as few calls as possible.
   *
   * @param identifiers the identifiers, as typed
   * @param options how to resolve them; the timeout is that of each call
   * @return a result for each of them, in their order; the failure of a call is that of its items
   */
  public List<ResolveResult> resolveMany(
      Collection<Identifier> identifiers, ResolveOptions options) {
    List<Identifier> all = List.copyOf(identifiers);
    return new ManyLookups(this, rules, batches, options, all).resolve();
  }

  /**
   * Finds the user who owns an identifier, or creates the user. Concurrent callers get the same
   * user, and one of them has created it. All its calls together have the client's timeout.
   *
   * @param identifier the identifier, as typed
   * @param user the user to create; it gets the identifier first unless it has it
   * @return the user, and whether it was created
   * @throws PolynymException if another of its identities belongs to another user, or a call fails
   */
  public GetOrCreateResult getOrCreate(Identifier identifier, User user) {
    Deadline deadline = ResolveOptions.defaults().deadline(rules.timeout());
    return new GetOrCreate(this, identifier, user, deadline).run();
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
    return lists().search(request);
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
    return lists().history(request);
  }

  /**
   * Returns all lists that have pages.
   *
   * @return the lists
   */
  public Lists lists() {
    return new Lists(this);
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

  /**
   * Ends the client and its watches. Calls under way have 5 seconds to finish; later ones throw a
   * {@link dev.polynym.errors.ClosedException}.
   */
  @Override
  public void close() {
    watches.forEach(Watch::close);
    rules.close(CLOSE_PATIENCE);
  }
}
