// The servers of a client: attempts take turns among those that are connected.
import { type Client, type ServiceError, connectivityState, status } from "@grpc/grpc-js";
import { ClosedError } from "../errors.js";
import { until } from "../signals.js";

/** How many attempts in a row reach their deadlines without an answer on a dead connection. */
const SILENT_DEADLINES = 2;
/**
 * What grpc-js says of a call that had a connection when its deadline came. A server says something
 * else.
 */
const NO_ANSWER = /^Deadline exceeded.*remote_addr=/;

/** There is no connection to any server. */
export class Unreachable extends Error {}

/** A server, and the connections to its addresses. */
export class Server {
  #client: Client;
  #isClosed = false;
  #unanswered = 0;
  #changed?: Promise<void>;
  #failure?: Promise<ServiceError | null>;

  constructor(
    /** `HOST:PORT`. */
    readonly name: string,
    private readonly open: () => Client,
  ) {
    this.#client = open();
  }

  /** The connections. Throws if they are closed. */
  get client(): Client {
    if (this.#isClosed) {
      throw new ClosedError();
    }
    return this.#client;
  }

  /** The state of the connection. Connects if there is none. */
  connect(): connectivityState {
    return this.client.getChannel().getConnectivityState(true);
  }

  /** Fulfilled once the state is another one. */
  changed(): Promise<void> {
    const channel = this.#client.getChannel();
    this.#changed ??= new Promise((resolve) =>
      channel.watchConnectivityState(channel.getConnectivityState(false), Infinity, () => {
        this.#changed = undefined;
        resolve();
      }),
    );
    return this.#changed;
  }

  /**
   * Why there is no connection. A call of a channel that failed to connect says it, and is not
   * sent.
   */
  failure(): Promise<ServiceError | null> {
    if (this.#failure === undefined) {
      this.#failure = this.#askFailure();
      void this.changed().then(() => (this.#failure = undefined));
    }
    return this.#failure;
  }

  #askFailure(): Promise<ServiceError | null> {
    const none = (bytes: Buffer) => bytes;
    const options = { deadline: Date.now() + 1_000, interceptors: [] };
    return new Promise((resolve) =>
      this.#client.makeUnaryRequest("/", none, none, Buffer.alloc(0), options, (error) =>
        resolve(error),
      ),
    );
  }

  /**
   * Notes the end of an attempt. The last of several deadlines leaves the connection; calls on it
   * go on.
   */
  note(error: ServiceError | null): void {
    if (error === null || error.metadata.get("grpc-status-details-bin").length > 0) {
      this.#unanswered = 0;
    } else if (error.code === status.DEADLINE_EXCEEDED && NO_ANSWER.test(error.details)) {
      this.#unanswered++;
    }
    if (this.#unanswered >= SILENT_DEADLINES) {
      this.replace();
    }
  }

  /** Lets the next call open a new connection. Calls on the former one go on. */
  replace(): void {
    if (!this.#isClosed) {
      const former = this.#client;
      this.#unanswered = 0;
      this.#client = this.open();
      former.close();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#client.close();
  }
}

/** All servers of a client. */
export class Servers {
  #turn = 0;

  constructor(private readonly all: readonly Server[]) {}

  /**
   * A connected server, if possible another one than that of the last attempt. Waits for those that
   * are connecting. Fails with `Unreachable`, a `ClosedError`, or the reason of the signal.
   */
  async next(
    deadline: number,
    signal: AbortSignal | undefined,
    last: Server | undefined,
  ): Promise<Server> {
    for (;;) {
      signal?.throwIfAborted();
      const states = new Map(this.all.map((server) => [server, server.connect()]));
      const connected = this.all.filter((server) => states.get(server) === connectivityState.READY);
      if (connected.length > 0) {
        return this.#take(connected, last);
      }
      if (this.all.every((server) => states.get(server) === connectivityState.TRANSIENT_FAILURE)) {
        throw new Unreachable("", { cause: await this.#take(this.all, last).failure() });
      }
      if (performance.now() >= deadline) {
        throw new Unreachable();
      }
      await until(deadline, [signal], ...this.all.map((server) => server.changed()));
    }
  }

  close(): void {
    this.all.forEach((server) => server.close());
  }

  #take(servers: readonly Server[], last: Server | undefined): Server {
    const others = servers.filter((server) => server !== last);
    const candidates = others.length > 0 ? others : servers;
    return candidates[this.#turn++ % candidates.length] as Server;
  }
}
