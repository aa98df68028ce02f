// The options of clients and calls.
import { readFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import type { ChannelOptions, Interceptor } from "@grpc/grpc-js";
import type { Code } from "./errors.js";

/** The options of a client. */
export interface ConnectOptions {
  /** The token of the caller. */
  token?: string;
  /** A file with the token. It is read again when it changes. By default `POLYNYM_TOKEN_FILE`. */
  tokenFile?: string;
  /**
   * A PEM file of the authorities that sign servers' certificates. By default `POLYNYM_CA`, else
   * the system's.
   */
  ca?: string;
  /** A PEM file of the client's certificate. */
  cert?: string;
  /** A PEM file of the key of `cert`. */
  key?: string;
  /** The tenant of all requests that name none. */
  tenant?: string;
  /** Sends the token without TLS to hosts other than this one. */
  insecure?: boolean;
  /** The deadline of a call with all its attempts, in milliseconds: 2,000 by default. */
  timeoutMs?: number;
  /** How often a failed call is attempted again: 2 by default, 0 for never. */
  retries?: number;
  /**
   * Whether calls wait for a server that cannot be reached until their deadline: yes by default.
   */
  waitForReady?: boolean;
  /** The first wait before a server is connected again, in milliseconds: 50 by default. */
  firstBackoffMs?: number;
  /** The longest wait before a server is connected again, in milliseconds: 1,000 by default. */
  maxBackoffMs?: number;
  /** Whether concurrent `resolve` calls share requests: yes by default. */
  batching?: boolean;
  /** Is called after each attempt of a call. */
  observer?: Observer;
  /** Interceptors of @grpc/grpc-js, which see each attempt. */
  interceptors?: Interceptor[];
  /** Further options of the channel of @grpc/grpc-js. */
  channelOptions?: ChannelOptions;
}

const NAMES: Record<keyof ConnectOptions, true> = {
  token: true,
  tokenFile: true,
  ca: true,
  cert: true,
  key: true,
  tenant: true,
  insecure: true,
  timeoutMs: true,
  retries: true,
  waitForReady: true,
  firstBackoffMs: true,
  maxBackoffMs: true,
  batching: true,
  observer: true,
  interceptors: true,
  channelOptions: true,
};

/** Refuses options that a client does not have. */
export function checkNames(options: ConnectOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(NAMES, name));
  if (unknown !== undefined) {
    const names = Object.keys(NAMES).join(", ");
    throw new TypeError(`a client has no option ${unknown}: its options are ${names}`);
  }
}

/** An attempt of a call that has ended. */
export interface ObservedAttempt {
  /** The service, such as `polynym.v1.DirectoryService`. */
  service: string;
  /** The method, such as `ResolveIdentity`. */
  method: string;
  /**
   * The number of the attempt, from 1 on. One that reached no server has the number of the next
   * one.
   */
  attempt: number;
  /** How long it took, in milliseconds. */
  durationMs: number;
  /** How it ended. */
  code: Code | "OK";
  /** The server's reason for an error. */
  reason?: string;
  /** The server, as `HOST:PORT`; absent if none was reached. */
  server?: string;
}

/** Is called after each attempt. */
export type Observer = (attempt: ObservedAttempt) => void;

/** The options of one call. */
export interface CallOptions {
  /**
   * The deadline of the call with all its attempts, in milliseconds. Streams have none unless this
   * sets it.
   */
  timeoutMs?: number;
  /**
   * Ends the call: it fails with the reason of the signal, or with an `OutcomeUnknownError` if it
   * changes something and may have happened.
   */
  signal?: AbortSignal;
  /** How often the call is attempted again. */
  retries?: number;
  /** Further headers, such as `polynym-reason`. */
  headers?: Readonly<Record<string, string>>;
}

/** Where a server listens. */
export interface Target {
  /** `HOST:PORT`. */
  name: string;
  host: string;
  address: string;
  tls: boolean;
  loopback: boolean;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Where the servers listen: at least one, all with TLS or all without. */
export type Targets = readonly [Target, ...Target[]];

/** The addresses of a list, or of one string with commas between them. */
export function parseTargets(servers: string | readonly string[]): Targets {
  const list = typeof servers === "string" ? servers.split(",") : servers;
  if (!Array.isArray(list) || !list.every((server) => typeof server === "string")) {
    throw new TypeError(
      "the servers must be a string or an array of strings, before the options: " +
        "connect(servers, options)",
    );
  }
  const [first, ...others] = list.map((server) => parseTarget(server.trim()));
  if (first === undefined) {
    throw new TypeError("the list of servers is empty");
  }
  if (others.some(({ tls }) => tls !== first.tls)) {
    throw new TypeError("the servers must all be https://, or all http://");
  }
  return [first, ...others];
}

/** The address in `https://HOST:PORT`, `http://HOST:PORT` or `HOST:PORT`. */
export function parseTarget(server: string): Target {
  if (server.includes("@")) {
    throw new TypeError("the server must not have user information: pass a token with token");
  }
  const [, scheme, rest] = /^(?:(https?):\/\/)?([^/]+)\/?$/.exec(server) ?? [];
  const port = /:([^:\]]*)$/.exec(rest ?? "")?.[1];
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && +port >= 1 && +port <= 65_535)) {
    throw new TypeError(
      `the port of a server must be a number from 1 to 65535, not ${JSON.stringify(port)}`,
    );
  }
  const url = URL.canParse(`http://${rest}`) ? new URL(`http://${rest}`) : undefined;
  if (rest === undefined || !url || url.search || url.hash) {
    throw new TypeError("the server must be https://HOST:PORT, http://HOST:PORT or HOST:PORT");
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const loopback = isLoopback(host);
  const tls = scheme === undefined ? !loopback : scheme === "https";
  // A URL leaves out the port 80.
  const name = `${url.hostname}:${port ?? (tls ? "443" : "80")}`;
  return { name, host, address: `dns:${name}`, tls, loopback };
}

function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version === 0
    ? host === "localhost"
    : LOOPBACK.check(host, version === 6 ? "ipv6" : "ipv4");
}

/** How calls wait for a server that cannot be reached. */
export function backoffOf({
  waitForReady = true,
  firstBackoffMs = 50,
  maxBackoffMs = 1_000,
}: ConnectOptions) {
  if (!(firstBackoffMs > 0 && maxBackoffMs >= firstBackoffMs)) {
    throw new RangeError("firstBackoffMs must be greater than zero, and maxBackoffMs no less");
  }
  return { waitForReady, firstBackoffMs, maxBackoffMs };
}

/** A timeout that a call can have. */
export function checkedTimeout(timeoutMs: number): number {
  if (!(timeoutMs > 0)) {
    throw new RangeError("timeoutMs must be greater than zero");
  }
  return timeoutMs;
}

/** A number of retries that a call can have. */
export function checkedRetries(retries: number): number {
  if (!Number.isInteger(retries) || retries < 0) {
    throw new RangeError("retries must be a whole number from 0 on");
  }
  return retries;
}

/** Reads a file that an option names. */
export function readOption(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`cannot read the file of ${name}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** A variable of the environment, unless it is empty. */
export function variable(name: string): string | undefined {
  return process.env[name] || undefined;
}
