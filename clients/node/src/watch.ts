// Events as they are committed, over lost connections.
import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "./calls/caller.js";
import { type Attempts, isTransient } from "./calls/retries.js";
import type { Server } from "./calls/servers.js";
import { PolynymError, UnavailableError } from "./errors.js";
import {
  DirectoryServiceDefinition as Directory,
  type WatchRequest,
  type WatchResponse,
} from "./gen/polynym/v1/directory_service.js";
import type { Event, EventType } from "./gen/polynym/v1/journal.js";
import type { CallOptions } from "./options.js";
import { onAbort } from "./signals.js";

/** The longest delay before a watch connects again, in milliseconds. */
const MAX_BACKOFF = 10_000;
/**
 * How long a watch waits for a response, in milliseconds: the server sends one every 15 seconds.
 */
const MAX_SILENCE = 45_000;
/** How many of the last events are known when a resumed watch repeats some. */
const REMEMBERED = 1_000;

/** The options of a watch. */
export interface WatchOptions extends Pick<CallOptions, "signal" | "headers"> {
  /** The tenant to watch. */
  tenant?: string;
  /** The ids of the users to watch: all of them by default. */
  userIds?: readonly string[];
  /** The kinds of events: all of them by default. */
  types?: readonly EventType[];
  /**
   * The last token of an earlier watch of the same users and kinds: the watch continues after it.
   */
  resumeToken?: string;
}

/** An event, with the token after which another watch continues. */
export interface WatchedEvent {
  event: Event;
  resumeToken: string;
}

/**
 * A watch. It begins when it is made, connects again by itself, and ends with an error that
 * connecting again would not mend, such as `RESUME_EXPIRED`. Iterate over it once.
 */
export class Watch implements AsyncIterable<WatchedEvent> {
  /**
   * Fulfilled with the first response: changes that are acknowledged after it are among the events.
   */
  readonly started: Promise<void>;
  #resumeToken: string;
  /** The server of the last connection. */
  #server?: Server;
  readonly #caller: Caller;
  readonly #options: WatchOptions;
  readonly #maxSilence: number;
  readonly #closed = new AbortController();
  readonly #signal: AbortSignal;
  readonly #unlisten: () => void;
  readonly #responses: AsyncGenerator<WatchResponse, void, undefined>;
  readonly #first: Promise<IteratorResult<WatchResponse, void>>;

  /** Use `client.watch`. */
  constructor(caller: Caller, options: WatchOptions, maxSilence = MAX_SILENCE) {
    this.#maxSilence = maxSilence;
    this.#caller = caller;
    this.#options = options;
    this.#resumeToken = options.resumeToken ?? "";
    const { signal } = this.#closed;
    this.#signal = options.signal ? AbortSignal.any([options.signal, signal]) : signal;
    this.#unlisten = onAbort(caller.closed, () => this.#end(caller.closed.reason));
    this.#responses = this.#connections();
    this.#first = this.#responses.next();
    this.started = this.#first.then(() => undefined);
    // The iterator reports the error, too.
    this.started.catch(() => undefined);
  }

  /** The token of the last response that was read, of heartbeats, too. */
  get resumeToken(): string {
    return this.#resumeToken;
  }

  /** Ends the watch. */
  close(): void {
    this.#end();
  }

  /** The events. Leaving the loop ends the watch. */
  async *[Symbol.asyncIterator](): AsyncGenerator<WatchedEvent, void, undefined> {
    try {
      for (let next = await this.#first; !next.done; next = await this.#responses.next()) {
        const { kind, resumeToken } = next.value;
        if (kind?.$case === "event") {
          yield { event: kind.value, resumeToken };
        }
      }
    } catch (error) {
      if (!this.#closed.signal.aborted) {
        throw error;
      }
    } finally {
      this.close();
    }
  }

  /** The first response comes by the rules of a call. After it, the watch resumes for ever. */
  async *#connections(): AsyncGenerator<WatchResponse, void, undefined> {
    const delivered = new RecentEvents();
    let attempts: Attempts | undefined = this.#caller.attempts({ name: "Watch", changes: false });
    for (let failures = 0; ; failures++) {
      let retryAfter = 0;
      try {
        for await (const response of this.#connection(attempts)) {
          attempts = undefined;
          failures = 0;
          this.#resumeToken = response.resumeToken;
          if (delivered.add(response)) {
            yield response;
          }
        }
        if (attempts) {
          throw new UnavailableError({ code: "UNAVAILABLE", message: "the watch did not begin" });
        }
      } catch (error) {
        if (attempts || !(error instanceof PolynymError) || !isTransient(error)) {
          throw error;
        }
        retryAfter = error.retryAfterMs ?? 0;
      }
      const backoff = Math.random() * Math.min(100 * 2 ** failures, MAX_BACKOFF);
      await sleep(backoff + retryAfter, undefined, { signal: this.#signal }).catch(() =>
        this.#signal.throwIfAborted(),
      );
    }
  }

  /** The responses of one connection. A server that is silent for too long counts as lost. */
  async *#connection(attempts?: Attempts): AsyncGenerator<WatchResponse, void, undefined> {
    const silence = new AbortController();
    const silent = new UnavailableError({
      code: "UNAVAILABLE",
      message: "the watch was silent for too long",
    });
    const signal = AbortSignal.any([this.#signal, silence.signal]);
    const responses = this.#stream(signal, attempts);
    try {
      for (;;) {
        const timer = setTimeout(() => silence.abort(silent), this.#maxSilence);
        const next = await responses.next().finally(() => clearTimeout(timer));
        if (next.done) {
          return;
        }
        yield next.value;
      }
    } catch (error) {
      if (error === silent) {
        this.#server?.replace();
      }
      throw error;
    } finally {
      await responses.return();
    }
  }

  #end(reason?: unknown): void {
    this.#unlisten();
    this.#closed.abort(reason);
  }

  #stream(
    signal: AbortSignal,
    attempts: Attempts | undefined,
  ): AsyncGenerator<WatchResponse, void, undefined> {
    const { tenant, userIds, types, headers } = this.#options;
    const request: Partial<WatchRequest> = {
      tenant,
      userIds: userIds && [...userIds],
      types: types && [...types],
      resumeToken: this.#resumeToken,
    };
    return this.#caller.stream(Directory, Directory.methods.watch, request, {
      headers,
      signal,
      attempts,
      former: this.#server,
      onServer: (server) => (this.#server = server),
    });
  }
}

/** The ids of the last events. */
class RecentEvents {
  readonly #ids = new Set<string>();

  /** Whether the response is not an event that was there before. */
  add({ kind }: WatchResponse): boolean {
    if (kind?.$case !== "event") {
      return true;
    }
    const { eventId } = kind.value;
    if (this.#ids.has(eventId)) {
      return false;
    }
    this.#ids.add(eventId);
    const [oldest] = this.#ids;
    if (this.#ids.size > REMEMBERED && oldest !== undefined) {
      this.#ids.delete(oldest);
    }
    return true;
  }
}
