// Look-ups of many identifiers, and of many callers.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  type ConnectOptions,
  Consistency,
  DeadlineExceededError,
  type Identifier,
  NotFoundError,
  PermissionDeniedError,
  PolynymError,
  ResourceExhaustedError,
  connect,
  email,
  handle,
  phone,
  social,
  url,
} from "polynym";
import { Failure, LOST, type Script, type SeenCall, scripted } from "./scripted.mjs";

type Item = (identifier: Identifier) => unknown;

const nameOf = (identifier: Identifier) => String(identifier.kind?.value);
const found: Item = (identifier) => ({ user: { userId: nameOf(identifier) }, identity: { identifier } });

/** Answers single look-ups and batches alike. */
function answers(item: Item = found): Script {
  return ({ method, request }) => {
    if (method === "ResolveIdentity") {
      return item(request.identifier);
    }
    const results = request.identifiers.map((identifier: Identifier) => {
      const result = item(identifier);
      const [$case, value] = result instanceof Failure ? ["error", result.status] : ["found", result];
      return { outcome: { $case, value } };
    });
    return { results };
  };
}

/** An answer that waits until it is released. */
function held(script: Script = answers()) {
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  return { release, script: (call: SeenCall) => released.then(() => script(call)) };
}

async function start(context: TestContext, scripts: Script[], options: ConnectOptions = {}) {
  const server = await scripted(...scripts);
  const client = connect(server.address, { timeoutMs: 60_000, ...options });
  context.after(() => {
    client.close();
    server.stop();
  });
  return { client, calls: server.calls };
}

async function until(condition: () => unknown) {
  while (!condition()) {
    await new Promise(setImmediate);
  }
}

const sizes = (calls: SeenCall[]) => calls.map(({ request }) => request.identifiers?.length ?? 1);
const numbered = (count: number) => Array.from({ length: count }, (_, index) => handle(`user${index}`));

test("identifiers have their kinds", () => {
  const kinds = [email("a@b.c"), handle("@joe"), phone("1", "US"), phone("+1"), social("github", "5"), url("http://a")];
  assert.deepEqual(kinds.map(({ kind }) => [kind?.$case, kind?.value]), [
    ["email", "a@b.c"],
    ["handle", "@joe"],
    ["phone", { number: "1", region: "US" }],
    ["phone", { number: "+1", region: "" }],
    ["social", { provider: "github", subject: "5" }],
    ["url", "http://a"],
  ]);
});

test("the first look-up goes alone, and those that come until it returns go together", async (context) => {
  const first = held();
  const { client, calls } = await start(context, [first.script, answers()]);
  const all = numbered(1_500).map((identifier) => client.resolve(identifier));
  await until(() => calls.length === 1);
  first.release();
  const owners = await Promise.all(all);
  assert.deepEqual(owners.map(({ user }) => user.userId), numbered(1_500).map(nameOf));
  assert.deepEqual(sizes(calls), [1, 1_000, 499]);
});

test("callers that look up one identifier after another stay together", async (context) => {
  const { client, calls } = await start(context, [answers()]);
  await Promise.all(
    numbered(20).map(async (identifier) => {
      for (let turn = 0; turn < 5; turn++) {
        await client.resolve(identifier);
      }
    }),
  );
  assert.deepEqual(sizes(calls), [1, 20, 20, 20, 20, 19]);
});

test("a request that takes long does not hold up the others", async (context) => {
  const hangs: Script = () => new Promise(() => {});
  const { client, calls } = await start(context, [hangs, hangs, hangs, hangs, answers()]);
  const now = performance.now.bind(performance);
  let skipped = 0;
  context.mock.method(performance, "now", () => now() + skipped);
  const controller = new AbortController();
  const { signal } = controller;
  const hanging: Promise<unknown>[] = [];
  for (let call = 1; call <= 4; call++) {
    // Two callers each: the first of them is late, and sent.
    skipped += 300;
    hanging.push(client.resolve(handle("late"), { signal }), client.resolve(handle("late"), { signal }));
    await until(() => calls.length === call);
  }
  skipped += 300;
  const last = client.resolve(handle("last"));
  hanging.push(last);
  const results = Promise.allSettled(hanging);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(sizes(calls), [1, 2, 2, 2]);
  controller.abort();
  await results;
  assert.equal((await last).user.userId, "last");
});

test("look-ups of different queries do not share requests", async (context) => {
  const first = held();
  const { client, calls } = await start(context, [first.script]);
  const ask = (options: Parameters<typeof client.resolve>[1]) => client.resolve(handle("joe"), options);
  const queries = [
    {},
    { tenant: "acme" },
    { consistency: Consistency.EVENTUAL },
    { maxStalenessMs: 100 },
    { maxStalenessMs: 200 },
    { showDisabled: true },
    { fields: ["user_id"] },
  ];
  const all = queries.map(ask);
  await until(() => calls.length === queries.length);
  all.push(...queries.map(ask));
  first.release();
  await Promise.all(all);
  assert.equal(calls.length, 2 * queries.length);
  assert.deepEqual(calls[3]?.request.maxStaleness, { seconds: 0n, nanos: 100_000_000 });
});

test("linearizable look-ups and those of the past go alone, and all without batching", async (context) => {
  for (const [options, batching] of [
    [{ consistency: Consistency.LINEARIZABLE }, true],
    [{ asOf: new Date(0) }, true],
    [{}, false],
  ] as const) {
    const { client, calls } = await start(context, [answers()], { batching });
    await Promise.all(numbered(10).map((identifier) => client.resolve(identifier, options)));
    assert.deepEqual(sizes(calls), Array(10).fill(1));
  }
});

test("callers that leave do not disturb the others", async (context) => {
  const first = held();
  const second = held();
  const { client, calls } = await start(context, [first.script, second.script]);
  const controller = new AbortController();
  const one = client.resolve(handle("one"));
  await until(() => calls.length === 1);
  const expired = assert.rejects(client.resolve(handle("two"), { timeoutMs: 100 }), DeadlineExceededError);
  const aborted = assert.rejects(client.resolve(handle("three"), { signal: controller.signal }), /enough/);
  const four = client.resolve(handle("four"));
  first.release();
  await one;
  await until(() => calls.length === 2);
  // On a busy machine, the second caller may have left before the request.
  assert([2, 3].includes(sizes(calls)[1]!));
  controller.abort(new Error("enough"));
  await Promise.all([expired, aborted]);
  assert.equal(calls[1]?.cancelled, false);
  second.release();
  assert.equal((await four).user.userId, "four");
});

test("a batch ends once all of its callers have left", async (context) => {
  const first = held();
  const { client, calls } = await start(context, [first.script, () => new Promise(() => {}), answers()]);
  const one = client.resolve(handle("one"));
  await until(() => calls.length === 1);
  const aborting = [new AbortController(), new AbortController()];
  const left = aborting.map(({ signal }) => assert.rejects(client.resolve(handle("two"), { signal })));
  first.release();
  await one;
  await until(() => calls.length === 2);
  aborting.forEach((controller) => controller.abort());
  await Promise.all(left);
  await until(() => calls[1]?.cancelled);
  assert.equal((await client.resolve(handle("three"))).user.userId, "three");
});

test("each caller of a batch gets its own error", async (context) => {
  const first = held();
  const missing = new Failure("NOT_FOUND", "IDENTITY_NOT_FOUND", { field: "identifiers[1]" });
  const item: Item = (identifier) => (nameOf(identifier) === "user1" ? missing : found(identifier));
  const { client, calls } = await start(context, [first.script, answers(item)]);
  const [zero, one, two] = numbered(3).map((identifier) => client.resolve(identifier));
  first.release();
  await zero;
  const error = await one!.catch((error) => error);
  assert(error instanceof NotFoundError);
  assert.equal(error.field, "identifier");
  assert.equal((await two!).user.userId, "user2");
  assert.deepEqual(sizes(calls), [1, 2]);
});

test("any number of calls may share a signal", async (context) => {
  const { client } = await start(context, [answers()]);
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on("warning", warned);
  context.after(() => process.off("warning", warned));
  const { signal } = new AbortController();
  const batched = numbered(50).map((identifier) => client.resolve(identifier, { signal }));
  const single = numbered(50).map((identifier) => client.directory.resolveIdentity({ identifier }, { signal }));
  await Promise.all([...batched, ...single]);
  assert.deepEqual(warnings, []);
});

test("what is no identifier fails alone", async (context) => {
  const { client } = await start(context, [answers()]);
  const [one, wrong, two] = [handle("one"), undefined as unknown as Identifier, handle("two")].map((identifier) =>
    client.resolve(identifier),
  );
  await assert.rejects(wrong!, TypeError);
  assert.deepEqual([(await one!).user.userId, (await two!).user.userId], ["one", "two"]);
  await assert.rejects(client.resolveMany([undefined as unknown as Identifier]), TypeError);
});

test("a batch that fails fails for all of its callers", async (context) => {
  const first = held();
  const denied = () => new Failure("PERMISSION_DENIED", "ROLE_DENIED");
  const { client } = await start(context, [first.script, denied]);
  const [zero, ...others] = numbered(3).map((identifier) => client.resolve(identifier));
  first.release();
  await zero;
  for (const other of others) {
    await assert.rejects(other, PermissionDeniedError);
  }
});

test("items for which there was no room are retried alone", async (context) => {
  const first = held();
  const item: Item = (identifier) =>
    nameOf(identifier) === "user1"
      ? new Failure("RESOURCE_EXHAUSTED", "ANSWER_TOO_LARGE")
      : nameOf(identifier) === "user2"
        ? new Failure("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 1 })
        : found(identifier);
  const { client, calls } = await start(context, [first.script, answers(item), answers()]);
  const all = numbered(4).map((identifier) => client.resolve(identifier));
  first.release();
  const owners = await Promise.all(all);
  assert.deepEqual(owners.map(({ user }) => user.userId), ["user0", "user1", "user2", "user3"]);
  assert.deepEqual(calls.slice(2).map(({ method }) => method), ["ResolveIdentity", "ResolveIdentity"]);
});

test("any number of identifiers is resolved in order, in requests of bounded size", async (context) => {
  const { client, calls } = await start(context, [answers()]);
  const long = Array.from({ length: 30 }, (_, index) => handle(`${index}`.padEnd(64 * 1024, "x")));
  const identifiers = [...numbered(2_400), ...long];
  const outcomes = await client.resolveMany(identifiers);
  assert.deepEqual(
    outcomes.map((item) => (item instanceof PolynymError ? item.reason : item.user.userId)),
    identifiers.map(nameOf),
  );
  assert.deepEqual(sizes(calls), [1_000, 1_000, 413, 14, 3]);
  assert.deepEqual(await client.resolveMany([]), []);
});

test("what did not fit into an answer is asked for again, and a large user alone", async (context) => {
  const item: Item = (identifier) => {
    const name = nameOf(identifier);
    const reason = name === "user1" ? "USER_TOO_LARGE" : "ANSWER_TOO_LARGE";
    return name === "user0" ? found(identifier) : new Failure("RESOURCE_EXHAUSTED", reason);
  };
  const tooLarge = answers(() => new Failure("RESOURCE_EXHAUSTED", "ANSWER_TOO_LARGE"));
  const { client, calls } = await start(context, [answers(item), answers(), tooLarge, () => LOST, answers()]);
  const outcomes = await client.resolveMany(numbered(4));
  assert(!outcomes.some((item) => item instanceof PolynymError));
  assert.deepEqual(sizes(calls), [4, 1, 2, 1, 1, 1]);
  assert.deepEqual(calls.map(({ method }) => method).filter((name) => name === "ResolveIdentity").length, 3);
});

test("the server's own limit of a batch is learned", async (context) => {
  const limited: Script = (call) =>
    call.request.identifiers.length > 100
      ? new Failure("INVALID_ARGUMENT", "BATCH_TOO_LARGE", { metadata: { limit: "100", value: "250" } })
      : answers()(call);
  const { client, calls } = await start(context, [limited]);
  assert.equal((await client.resolveMany(numbered(250))).length, 250);
  assert.deepEqual(sizes(calls), [250, 100, 100, 50]);
  await client.resolveMany(numbered(150));
  assert.deepEqual(sizes(calls).slice(4), [100, 50]);
});

test("a batch that the server refuses whole is an error", async (context) => {
  const { client } = await start(context, [() => new Failure("RESOURCE_EXHAUSTED", "DISK_FULL")]);
  await assert.rejects(client.resolveMany(numbered(2)), ResourceExhaustedError);
});
