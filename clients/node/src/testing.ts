// Servers for tests.
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { variable } from "./options.js";

/** How much of a server's log is kept for the error if it ends, in characters. */
const MAX_LOG = 10_000;

/** The options of a server for tests. */
export interface TestServerOptions {
  /** The program. By default `POLYNYM_BIN`, else `polynym` on the `PATH`. */
  program?: string;
  /** Further arguments of `polynym serve --ephemeral`. */
  args?: readonly string[];
}

/** A server that a test has for itself, with an empty store. */
export interface TestServer {
  /** For `connect`: `http://127.0.0.1:PORT`. */
  readonly address: string;
  /** Where it answers HTTP and JSON: `http://127.0.0.1:PORT`. */
  readonly httpAddress: string;
  /** Stops it. Its store is removed. */
  stop(): Promise<void>;
}

/** Starts a server. It stops with this process at the latest, even if that is killed. */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const program = options.program ?? variable("POLYNYM_BIN") ?? "polynym";
  // The server stops when its standard input is closed.
  const child = spawn(program, ["serve", "--ephemeral", ...(options.args ?? [])]);
  const ended = new Promise((resolve) => child.once("close", resolve));
  const { grpc, http } = await addresses(program, child);
  child.stdout.resume();
  // A process that has nothing else to do may end.
  const handles = [child, child.stdin, child.stdout, child.stderr] as (ChildProcess | Socket)[];
  handles.forEach((handle) => handle.unref());
  return {
    address: `http://${grpc}`,
    httpAddress: `http://${http}`,
    async stop() {
      handles.forEach((handle) => handle.ref());
      child.kill();
      await ended;
    },
  };
}

/** The addresses that the server prints once it listens. */
function addresses(
  program: string,
  child: ChildProcessWithoutNullStreams,
): Promise<{ grpc: string; http: string }> {
  return new Promise((resolve, reject) => {
    let log = "";
    child.stderr
      .setEncoding("utf8")
      .on("data", (text: string) => (log = (log + text).slice(-MAX_LOG)));
    child.once("error", (error) =>
      reject(new Error(`cannot start ${program}: ${error.message}`, { cause: error })),
    );
    child.once("close", () => reject(new Error(`${program} serve ended:\n${log}`)));
    createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line)));
  });
}
