// The client.
import { Caller } from "./calls/caller.js";
import type { Stub } from "./calls/service.js";
import { AdminServiceDefinition } from "./gen/polynym/v1/admin_service.js";
import {
  DirectoryServiceDefinition,
  type ListHistoryRequest,
  type SearchUsersRequest,
} from "./gen/polynym/v1/directory_service.js";
import { InboxServiceDefinition } from "./gen/polynym/v1/inbox_service.js";
import type { Event } from "./gen/polynym/v1/journal.js";
import { RegistryServiceDefinition } from "./gen/polynym/v1/registry_service.js";
import type { Identifier, User } from "./gen/polynym/v1/types.js";
import { Batching } from "./lookups/batching.js";
import {
  Lookups,
  type Outcome,
  type Resolution,
  type ResolveOptions,
  queryOf,
} from "./lookups/lookups.js";
import { Many } from "./lookups/many.js";
import { type CallOptions, type ConnectOptions, variable } from "./options.js";
import { itemsOf } from "./pages.js";
import { type GetOrCreateOptions, type GotOrCreated, type NewUser, getOrCreate } from "./users.js";
import { Watch, type WatchOptions } from "./watch.js";

/** The options of `getUser`. */
export interface GetUserOptions extends CallOptions, Pick<ResolveOptions, "tenant" | "fields"> {}

/** The options of a search. */
export interface SearchOptions
  extends
    CallOptions,
    Pick<ResolveOptions, "tenant" | "fields">,
    Partial<Pick<SearchUsersRequest, "orderBy" | "pageSize" | "pageToken">> {}

/** The options of a history. */
export interface HistoryOptions
  extends
    CallOptions,
    Pick<ResolveOptions, "tenant">,
    Partial<Pick<ListHistoryRequest, "from" | "to" | "types" | "pageSize" | "pageToken">> {}

/** The request of a list. */
type Listing<S extends keyof Client, M extends keyof Client[S]> = Client[S][M] extends (
  request: infer Q,
  ...others: never[]
) => unknown
  ? Q
  : never;

/**
 * A client of one server, or of several. It connects with its first call, or by its method
 * `connect`.
 *
 * @param servers `https://HOST:PORT`, `http://HOST:PORT`, or `HOST:PORT`, which has TLS except for
 *   this host; several of these with commas between them, or as an array. By default
 *   `POLYNYM_SERVER`, else `http://127.0.0.1:7171`.
 */
export function connect(
  servers?: string | readonly string[],
  options: ConnectOptions = {},
): Client {
  return new Client(servers ?? variable("POLYNYM_SERVER") ?? "http://127.0.0.1:7171", options);
}

/**
 * A client. All calls have a deadline, are repeated if that is safe, and fail with a
 * `PolynymError`.
 */
export class Client {
  /** Look-ups: all calls of `DirectoryService`. */
  readonly directory: Stub<typeof DirectoryServiceDefinition>;
  /** Changes of users: all calls of `RegistryService`. */
  readonly registry: Stub<typeof RegistryServiceDefinition>;
  /** Notices to users: all calls of `InboxService`. */
  readonly inbox: Stub<typeof InboxServiceDefinition>;
  /** Administration: all calls of `AdminService`. */
  readonly admin: Stub<typeof AdminServiceDefinition>;
  readonly #caller: Caller;
  readonly #lookups: Lookups;
  readonly #batching?: Batching;

  /** Use `connect`. */
  constructor(servers: string | readonly string[], options: ConnectOptions) {
    this.#caller = new Caller(servers, options);
    this.directory = this.#caller.stub(DirectoryServiceDefinition);
    this.registry = this.#caller.stub(RegistryServiceDefinition);
    this.inbox = this.#caller.stub(InboxServiceDefinition);
    this.admin = this.#caller.stub(AdminServiceDefinition);
    this.#lookups = new Lookups(this.#caller);
    this.#batching =
      options.batching === false ? undefined : new Batching(this.#lookups, this.#caller.closed);
  }

  /**
   * Connects at once: fails with an `UnavailableError` if no server can be reached within the
   * timeout.
   */
  async connect(options: Pick<CallOptions, "timeoutMs" | "signal"> = {}): Promise<this> {
    await this.#caller.connect(options);
    return this;
  }

  /** Finds the owner of an identifier. Concurrent calls share requests. */
  async resolve(identifier: Identifier, options: ResolveOptions = {}): Promise<Resolution> {
    const query = queryOf(options);
    if (this.#batching === undefined || !Batching.allows(options)) {
      return this.#lookups.single(query, identifier, options);
    }
    options.signal?.throwIfAborted();
    this.#caller.closed.throwIfAborted();
    return this.#batching.resolve(
      query,
      identifier,
      this.#caller.deadline(options),
      options.signal,
    );
  }

  /**
   * Finds the owners of any number of identifiers: for each, in their order, the owner or the
   * error. The deadline is that of each request, of which each has 1,000 identifiers at most.
   */
  async resolveMany(
    identifiers: readonly Identifier[],
    options: ResolveOptions = {},
  ): Promise<Outcome[]> {
    this.#caller.closed.throwIfAborted();
    return new Many(this.#caller, this.#lookups, queryOf(options), identifiers, options).outcomes();
  }

  /**
   * Finds the owner of an identifier, or creates it: the identifier is the first of the user's
   * identities, unless it is among them. Of several callers at once, one creates the user.
   */
  async getOrCreate(
    identifier: Identifier,
    user: NewUser = {},
    options: GetOrCreateOptions = {},
  ): Promise<GotOrCreated> {
    return getOrCreate(
      this.#caller,
      (...lookup) => this.resolve(...lookup),
      identifier,
      user,
      options,
    );
  }

  /** Gets a user by id: for the id of a merged user, the user that it is part of. */
  async getUser(userId: string, options: GetUserOptions = {}): Promise<User> {
    const { tenant, fields } = options;
    const { user } = await this.directory.getUser(
      { userId, tenant, readMask: fields && [...fields] },
      options,
    );
    return user as User;
  }

  /** Lists the users that match the filter: all pages, each with a deadline of its own. */
  search(filter = "", options: SearchOptions = {}): AsyncGenerator<User, void, undefined> {
    const { tenant, fields, orderBy, pageSize, pageToken } = options;
    const request = {
      filter,
      tenant,
      orderBy,
      pageSize,
      pageToken,
      readMask: fields && [...fields],
    };
    return itemsOf(this.directory.searchUsers, "users", request, options);
  }

  /** Finds users by what somebody typed or pasted: all pages of `directory.findUsers`. */
  find(request: Listing<"directory", "findUsers">, options?: CallOptions) {
    return itemsOf(this.directory.findUsers, "matches", request, options);
  }

  /**
   * Lists the events of a user, by its id or an identifier, newest first: all pages, each with its
   * own deadline.
   */
  history(
    user: string | Identifier,
    options: HistoryOptions = {},
  ): AsyncGenerator<Event, void, undefined> {
    const { tenant, from, to, types, pageSize, pageToken } = options;
    const by: ListHistoryRequest["user"] =
      typeof user === "string"
        ? { $case: "userId", value: user }
        : { $case: "identifier", value: user };
    const request = { user: by, tenant, from, to, types, pageSize, pageToken };
    return itemsOf(this.directory.listHistory, "events", request, options);
  }

  /** Lists the events of a tenant: all pages of `directory.listEvents`. */
  events(request: Listing<"directory", "listEvents"> = {}, options?: CallOptions) {
    return itemsOf(this.directory.listEvents, "events", request, options);
  }

  /** Lists the tenants: all pages of `admin.listTenants`. */
  tenants(request: Listing<"admin", "listTenants"> = {}, options?: CallOptions) {
    return itemsOf(this.admin.listTenants, "tenants", request, options);
  }

  /** Lists the changes of a tenant's policies: all pages of `admin.listTenantHistory`. */
  tenantHistory(request: Listing<"admin", "listTenantHistory"> = {}, options?: CallOptions) {
    return itemsOf(this.admin.listTenantHistory, "events", request, options);
  }

  /** Lists the names of a tenant's attributes: all pages of `admin.listAttributeNames`. */
  attributeNames(request: Listing<"admin", "listAttributeNames"> = {}, options?: CallOptions) {
    return itemsOf(this.admin.listAttributeNames, "names", request, options);
  }

  /** Lists the notices of a user: all pages of `inbox.listNotices`. */
  notices(request: Listing<"inbox", "listNotices">, options?: CallOptions) {
    return itemsOf(this.inbox.listNotices, "notices", request, options);
  }

  /** Lists the bulk changes of a tenant: all pages of `registry.listBulkChanges`. */
  bulkChanges(request: Listing<"registry", "listBulkChanges"> = {}, options?: CallOptions) {
    return itemsOf(this.registry.listBulkChanges, "bulkChanges", request, options);
  }

  /** Watches the events of a tenant, over lost connections and restarts of servers. */
  watch(options: WatchOptions = {}): Watch {
    return new Watch(this.#caller, options);
  }

  /**
   * Ends the watches, and closes the connections once the open calls have ended. Calls that wait to
   * be sent, and all further ones, fail with a `ClosedError`.
   */
  close(): void {
    this.#caller.close();
  }
}
