// The credentials of a client, and the authorities by which it knows the server.
import { existsSync, readFileSync, statSync } from "node:fs";
import { ChannelCredentials } from "@grpc/grpc-js";
import { type ConnectOptions, type Targets, readOption, variable } from "../options.js";

/** The interval between checks of the file of a token, in milliseconds. */
const CHECK_INTERVAL = 1_000;
/** Where systems keep the authorities that they trust. Node.js has a list of its own instead. */
const SYSTEM_ROOTS = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** TLS, or none. */
export function channelCredentials([target]: Targets, options: ConnectOptions): ChannelCredentials {
  if ((options.cert === undefined) !== (options.key === undefined)) {
    throw new TypeError("a client certificate needs both cert and key");
  }
  if (!target.tls) {
    if (options.cert !== undefined) {
      throw new TypeError("a client certificate needs a server at https://");
    }
    return ChannelCredentials.createInsecure();
  }
  const ca = options.ca ?? variable("POLYNYM_CA") ?? SYSTEM_ROOTS.find((path) => existsSync(path));
  return ChannelCredentials.createSsl(
    ca === undefined ? null : readOption("ca", ca),
    options.key === undefined ? null : readOption("key", options.key),
    options.cert === undefined ? null : readOption("cert", options.cert),
  );
}

/** Returns the token for the next call. */
export type TokenSource = () => string | undefined;

/** The token of the options. */
export function tokenSource(targets: Targets, options: ConnectOptions): TokenSource {
  if (options.token !== undefined && options.tokenFile !== undefined) {
    throw new TypeError("give token or tokenFile, not both");
  }
  const file =
    options.tokenFile ?? (options.token === undefined ? variable("POLYNYM_TOKEN_FILE") : undefined);
  if (options.token === undefined && file === undefined) {
    return () => undefined;
  }
  const open = targets.find(({ tls, loopback }) => !tls && !loopback);
  if (open !== undefined && !options.insecure) {
    throw new Error(
      `the token would be sent to ${open.host} without encryption: use https://, or set insecure`,
    );
  }
  return file === undefined ? fixed(checked(options.token as string)) : fromFile(file);
}

function fixed(token: string): TokenSource {
  return () => token;
}

function fromFile(path: string): TokenSource {
  let changed = changeTime(path);
  let token = checked(readOption("tokenFile", path).toString());
  let next = performance.now() + CHECK_INTERVAL;
  return () => {
    if (performance.now() >= next) {
      next = performance.now() + CHECK_INTERVAL;
      const time = changeTime(path);
      if (time !== undefined && time !== changed) {
        const latest = attempt(() => checked(readFileSync(path, "utf8")));
        [token, changed] = latest === undefined ? [token, changed] : [latest, time];
      }
    }
    return token;
  };
}

function changeTime(path: string): number | undefined {
  return attempt(() => statSync(path).mtimeMs);
}

/** The result of the function, or undefined if it throws. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function checked(text: string): string {
  const token = text.trim();
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError("the token is empty, or has characters that a header cannot have");
  }
  return token;
}
