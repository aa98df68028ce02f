// Observers.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type ConnectOptions, type ObservedAttempt, connect, handle } from "polynym";
import { answers } from "./answers.mjs";
import { Failure, LOST, type Script, scripted, until } from "./scripted.mjs";

async function start(context: TestContext, scripts: Script[], options: ConnectOptions = {}) {
  const server = await scripted(...scripts);
  const attempts: ObservedAttempt[] = [];
  const observer = (attempt: ObservedAttempt) => attempts.push(attempt);
  const client = connect(server.address, { timeoutMs: 60_000, observer, ...options });
  context.after(() => {
    client.close();
    server.stop();
  });
  return { client, attempts, server };
}

test("an observer is called after each attempt", async (context) => {
  const missing = () => new Failure("NOT_FOUND", "USER_NOT_FOUND");
  const { client, attempts, server } = await start(context, [() => LOST, missing, answers()]);
  await assert.rejects(client.directory.getUser({}));
  await client.resolve(handle("joe"));
  await until(() => attempts.length === 3);
  const name = new URL(server.address).host;
  const directory = { service: "polynym.v1.DirectoryService", server: name };
  assert(attempts.every(({ durationMs }) => durationMs > 0));
  assert.deepEqual(
    attempts.map(({ durationMs, ...attempt }) => attempt),
    [
      { ...directory, method: "GetUser", attempt: 1, code: "UNAVAILABLE", reason: undefined },
      { ...directory, method: "GetUser", attempt: 2, code: "NOT_FOUND", reason: "USER_NOT_FOUND" },
      { ...directory, method: "ResolveIdentity", attempt: 1, code: "OK", reason: undefined },
    ],
  );
});

test("streams, signals and servers that cannot be reached are observed", async (context) => {
  const never: Script = () => new Promise(() => {});
  const { client, attempts, server } = await start(context, [async function* () {}, never], {
    waitForReady: false,
  });
  for await (const _ of client.admin.exportUsers({})) {
    assert.fail();
  }
  const controller = new AbortController();
  const call = assert.rejects(client.directory.getUser({}, { signal: controller.signal }));
  await until(() => server.calls.length === 2);
  controller.abort();
  await call;
  server.stop();
  await until(async () => {
    await client.directory.getUser({}).catch(() => undefined);
    return attempts.some(({ server }) => server === undefined);
  });
  const [exported, aborted] = attempts.map(({ method, code }) => [method, code]);
  assert.deepEqual(
    [exported, aborted],
    [
      ["ExportUsers", "OK"],
      ["GetUser", "CANCELLED"],
    ],
  );
  assert.equal(attempts.at(-1)?.code, "UNAVAILABLE");
});

test("an observer that throws fails no call, and its error is a warning", async (context) => {
  const warnings: (Error & { detail?: string })[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on("warning", warned);
  context.after(() => process.off("warning", warned));
  const fault = (text: string) => {
    throw new Error(text);
  };
  const observers = [() => fault("at once"), async () => fault("later")];
  for (const [index, observer] of observers.entries()) {
    const { client } = await start(context, [() => ({})], { observer });
    await client.directory.getUser({});
    await until(() => warnings.length === index + 1);
  }
  assert.deepEqual(
    warnings.map(({ name, message }) => [name, message]),
    Array(2).fill(["PolynymWarning", "an observer has failed"]),
  );
  assert.match(warnings[0]?.detail ?? "", /at once/);
  assert.match(warnings[1]?.detail ?? "", /later/);
});
