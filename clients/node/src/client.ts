// The client.
import { Batching } from "./batching.js";
import { Caller } from "./caller.js";
import type { PolynymError } from "./errors.js";
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
import { Lookups, type Resolution, type ResolveOptions, queryOf } from "./lookups.js";
import { type CallOptions, type ConnectOptions, variable } from "./options.js";
import type { Stub } from "./service.js";
import { Watch, type WatchOptions } from "./watch.js";

/** The options of `getUser`. */
export interface GetUserOptions extends CallOptions, Pick<ResolveOptions, "tenant" | "fields"> {}

/** The options of a search. */
export interface SearchOptions
  extends CallOptions,
    Pick<ResolveOptions, "tenant" | "fields">,
    Partial<Pick<SearchUsersRequest, "orderBy" | "pageSize" | "pageToken">> {}

/** The options of a history. */
export interface HistoryOptions
  extends CallOptions,
    Pick<ResolveOptions, "tenant">,
    Partial<Pick<ListHistoryRequest, "from" | "to" | "types" | "pageSize" | "pageToken">> {}

/**
 * Connects to a server. Nothing is sent before the first call.
 *
 * @param server `https://HOST:PORT`, `http://HOST:PORT`, or `HOST:PORT`, which has TLS except for this host. By
 *   default `POLYNYM_SERVER`, else `http://127.0.0.1:7171`.
 */
export function connect(server?: string, options: ConnectOptions = {}): Client {
  return new Client(server ?? variable("POLYNYM_SERVER") ?? "http://127.0.0.1:7171", options);
}

/** A client. All calls have a deadline, are repeated if that is safe, and fail with a `PolynymError`. */
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
  readonly #closed = new AbortController();

  /** Use `connect`. */
  constructor(server: string, options: ConnectOptions) {
    this.#caller = new Caller(server, options);
    this.directory = this.#caller.stub(DirectoryServiceDefinition);
    this.registry = this.#caller.stub(RegistryServiceDefinition);
    this.inbox = this.#caller.stub(InboxServiceDefinition);
    this.admin = this.#caller.stub(AdminServiceDefinition);
    this.#lookups = new Lookups(this.#caller);
    this.#batching = options.batching === false ? undefined : new Batching(this.#lookups);
  }

  /** Finds the owner of an identifier. Concurrent calls share requests. */
  async resolve(identifier: Identifier, options: ResolveOptions = {}): Promise<Resolution> {
    const query = queryOf(options);
    if (this.#batching === undefined || !Batching.allows(options)) {
      return this.#lookups.single(query, identifier, options);
    }
    options.signal?.throwIfAborted();
    return this.#batching.resolve(query, identifier, this.#caller.deadline(options), options.signal);
  }

  /**
   * Finds the owners of any number of identifiers: for each, in their order, the owner or the error. The deadline is
   * that of each request, of which each has 1,000 identifiers at most.
   */
  async resolveMany(
    identifiers: readonly Identifier[],
    options: ResolveOptions = {},
  ): Promise<(Resolution | PolynymError)[]> {
    return this.#lookups.many(queryOf(options), identifiers, options);
  }

  /** Gets a user by id: for the id of a merged user, the user that it is part of. */
  async getUser(userId: string, options: GetUserOptions = {}): Promise<User> {
    const { tenant, fields } = options;
    const { user } = await this.directory.getUser({ userId, tenant, readMask: fields && [...fields] }, options);
    return user as User;
  }

  /** Lists the users that match the filter: all pages, each with a deadline of its own. */
  async *search(filter = "", options: SearchOptions = {}): AsyncGenerator<User, void, undefined> {
    const { tenant, fields, orderBy, pageSize } = options;
    const request = { filter, tenant, orderBy, pageSize, readMask: fields && [...fields] };
    let pageToken = options.pageToken;
    do {
      const page = await this.directory.searchUsers({ ...request, pageToken }, options);
      yield* page.users;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** Lists the events of a user, by its id or an identifier, newest first: all pages, each with its own deadline. */
  async *history(user: string | Identifier, options: HistoryOptions = {}): AsyncGenerator<Event, void, undefined> {
    const { tenant, from, to, types, pageSize } = options;
    const by: ListHistoryRequest["user"] =
      typeof user === "string" ? { $case: "userId", value: user } : { $case: "identifier", value: user };
    let pageToken = options.pageToken;
    do {
      const request = { user: by, tenant, from, to, types, pageSize, pageToken };
      const page = await this.directory.listHistory(request, options);
      yield* page.events;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** Watches the events of a tenant, over lost connections and restarts of servers. */
  watch(options: WatchOptions = {}): Watch {
    return new Watch(this.#caller, options, this.#closed.signal);
  }

  /** Ends the watches, and closes the connection once the open calls have ended. Further calls fail. */
  close(): void {
    this.#closed.abort();
    this.#caller.close();
  }
}
