// Servers for tests.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { variable } from "./options.js";

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

/** Starts a server. It stops with the process at the latest. */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const program = options.program ?? variable("POLYNYM_BIN") ?? "polynym";
  const child = spawn(program, ["serve", "--ephemeral", ...(options.args ?? [])], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()).once("error", () => resolve()));
  void ended.then(() => process.off("exit", kill));
  const { grpc, http } = await addresses(program, child);
  child.stdout?.resume();
  return {
    address: `http://${grpc}`,
    httpAddress: `http://${http}`,
    async stop() {
      child.kill();
      await ended;
    },
  };
}

/** The addresses that the server prints once it listens. */
function addresses(program: string, child: ChildProcess): Promise<{ grpc: string; http: string }> {
  return new Promise((resolve, reject) => {
    const log: string[] = [];
    child.stderr?.setEncoding("utf8").on("data", (text: string) => log.push(text) > 100 && log.shift());
    child.once("error", (error) => reject(new Error(`cannot start ${program}: ${error.message}`, { cause: error })));
    child.once("close", () => reject(new Error(`${program} serve ended:\n${log.join("")}`)));
    if (child.stdout) {
      createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line)));
    }
  });
}
