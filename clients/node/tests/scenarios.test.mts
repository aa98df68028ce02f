// The scenarios that the clients of all languages share, against a real server and a proxy with
// faults.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Puppet } from "./puppet.mjs";

/** The program that runs the scenarios: the one that is named, or that of the checkout. */
function testbed(): string {
  const target = (profile: string) =>
    fileURLToPath(new URL(`../../../../target/${profile}/client-testbed`, import.meta.url));
  const found =
    process.env.POLYNYM_TESTBED ??
    [target("debug"), target("release")].find((path) => existsSync(path));
  assert(
    found,
    "there is no client-testbed: build it (cargo build -p client-testbed), or set POLYNYM_TESTBED",
  );
  return found;
}

test("the client passes the scenarios", { timeout: 300_000 }, async () => {
  const child = spawn(testbed(), { stdio: ["pipe", "pipe", "inherit"] });
  const exitCode = new Promise((resolve, reject) =>
    child.once("close", resolve).once("error", reject),
  );
  const puppet = new Puppet();
  for await (const line of createInterface(child.stdout)) {
    child.stdin.write(`${JSON.stringify(await puppet.take(JSON.parse(line)))}\n`);
  }
  puppet.close();
  assert.equal(await exitCode, 0);
});
