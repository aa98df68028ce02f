// Servers of the program under test. Each ends with this process: its standard input closes.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);
const program = process.env.POLYNYM_BIN;

/** The roles, from the least to the most powerful. */
export const ROLES = ["resolver", "viewer", "registrar", "admin"];

/** Starts a server with an empty temporary store and a console. */
export async function startServer(...args) {
  const child = spawn(program, ["serve", "--ephemeral", "--console", ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, NO_COLOR: "1" },
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    log = (log + text).slice(-100_000);
  });
  const lines = createInterface({ input: child.stdout });
  const [first] = await Promise.race([once(lines, "line"), once(child, "exit").then(() => [null])]);
  if (first === null) {
    throw new Error(`the server did not start:\n${log}`);
  }
  const { grpc, http } = JSON.parse(first);
  return {
    grpc,
    origin: `http://${http}`,
    log: () => log,
    async stop() {
      if (child.exitCode === null) {
        child.stdin.end();
        child.kill("SIGTERM");
        await once(child, "exit");
      }
    },
  };
}

/** A credentials file in a folder of its own. */
export class Credentials {
  /** Creates a file with one caller of each role, which is named like its role, for all tenants. */
  static async create() {
    const folder = await mkdtemp(join(tmpdir(), "polynym-browser-"));
    const credentials = new Credentials(folder);
    credentials.tokens = {};
    for (const role of ROLES) {
      credentials.tokens[role] = await credentials.add(role, role);
    }
    return credentials;
  }

  constructor(folder) {
    this.folder = folder;
    this.file = join(folder, "callers.toml");
  }

  /** Adds a caller, and returns its token. */
  async add(name, role, tenants = "*") {
    const args = ["token", "create", name, "--role", role, "--tenants", tenants, "--credentials", this.file];
    return (await run(program, args)).stdout.trim();
  }

  /** Revokes the tokens of a caller. */
  async revoke(name) {
    await run(program, ["token", "revoke", name, "--credentials", this.file]);
  }

  async remove() {
    await rm(this.folder, { recursive: true });
  }
}
