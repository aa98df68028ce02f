// Look-ups of many callers.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ClosedError,
  Consistency,
  DeadlineExceededError,
  type Identifier,
  NotFoundError,
  PermissionDeniedError,
  type PolynymError,
  email,
  handle,
  phone,
  social,
  url,
} from "polynym";
import { type Item, answers, found, held, nameOf, numbered, sizes } from "./answers.mjs";
import { Failure, failureOf, LOST, type Script, start, until } from "./scripted.mjs";

test("identifiers have their kinds", () => {
  const kinds = [
    email("a@b.c"),
    handle("@joe"),
    phone("1", "US"),
    phone("+1"),
    social("github", "5"),
    url("http://a"),
  ];
  assert.deepEqual(
    kinds.map(({ kind }) => [kind?.$case, kind?.value]),
    [
      ["email", "a@b.c"],
      ["handle", "@joe"],
      ["phone", { number: "1", region: "US" }],
      ["phone", { number: "+1", region: "" }],
      ["social", { provider: "github", subject: "5" }],
      ["url", "http://a"],
    ],
  );
});

test("the first look-up goes alone, and those that come until it returns go together", async (context) => {
  const first = held();
  const { client, calls } = await start(context, [first.script, answers()]);
  const all = numbered(1_500).map((identifier) => client.resolve(identifier));
  await until(() => calls.length >= 1);
  first.release();
  const owners = await Promise.all(all);
  assert.deepEqual(
    owners.map(({ user }) => user.userId),
    numbered(1_500).map(nameOf),
  );
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
  assert.equal(
    sizes(calls).reduce((sum, size) => sum + size),
    100,
  );
  assert(calls.length < 50);
});

test("requests that take long do not hold up the others, up to eight of them", async (context) => {
  const hangs: Script = () => new Promise(() => {});
  const { client, calls } = await start(context, [...Array<Script>(9).fill(hangs), answers()]);
  const controller = new AbortController();
  const { signal } = controller;
  const hanging: Promise<unknown>[] = [];
  for (let call = 1; call <= 9; call++) {
    hanging.push(client.resolve(handle("late"), { signal }));
    await until(() => calls.length === call);
  }
  const last = client.resolve(handle("last"));
  const results = Promise.allSettled(hanging);
  controller.abort();
  await results;
  assert.equal((await last).user.userId, "last");
  assert.equal(calls.length, 10);
});

test("look-ups of different queries do not share requests", async (context) => {
  const first = held();
  const { client, calls } = await start(context, [first.script]);
  const ask = (options: Parameters<typeof client.resolve>[1]) =>
    client.resolve(handle("joe"), options);
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
  await until(() => calls.length >= 1);
  const expired = assert.rejects(
    client.resolve(handle("two"), { timeoutMs: 100 }),
    DeadlineExceededError,
  );
  const aborted = assert.rejects(
    client.resolve(handle("three"), { signal: controller.signal }),
    /enough/,
  );
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
  const { client, calls } = await start(context, [
    first.script,
    () => new Promise(() => {}),
    answers(),
  ]);
  const one = client.resolve(handle("one"));
  await until(() => calls.length >= 1);
  const aborting = [new AbortController(), new AbortController()];
  const left = aborting.map(({ signal }) =>
    assert.rejects(client.resolve(handle("two"), { signal })),
  );
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
  const single = numbered(50).map((identifier) =>
    client.directory.resolveIdentity({ identifier }, { signal }),
  );
  await Promise.all([...batched, ...single]);
  assert.deepEqual(warnings, []);
});

test("what is no identifier fails alone", async (context) => {
  const { client } = await start(context, [answers()]);
  const [one, wrong, two] = [handle("one"), undefined as unknown as Identifier, handle("two")].map(
    (identifier) => client.resolve(identifier),
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
  assert.deepEqual(
    owners.map(({ user }) => user.userId),
    ["user0", "user1", "user2", "user3"],
  );
  assert.deepEqual(
    calls.slice(2).map(({ method }) => method),
    ["ResolveIdentity", "ResolveIdentity"],
  );
});

test("members of a shared request that fails go on alone, and it counts as their first attempt", async (context) => {
  const first = held();
  const { client, calls } = await start(context, [first.script, () => LOST, answers()]);
  const all = numbered(5).map((identifier) => client.resolve(identifier));
  await until(() => calls.length >= 1);
  first.release();
  const owners = await Promise.all(all);
  assert.deepEqual(
    owners.map(({ user }) => user.userId),
    numbered(5).map(nameOf),
  );
  assert.deepEqual(sizes(calls), [1, 4, 1, 1, 1, 1]);
});

test("a member leaves a shared request at half of its time", async (context) => {
  const first = held();
  const hangs: Script = () => new Promise(() => {});
  const { client, calls } = await start(context, [first.script, hangs, answers()]);
  const one = client.resolve(handle("one"));
  const two = client.resolve(handle("two"), { timeoutMs: 6_000 });
  const controller = new AbortController();
  const patient = assert.rejects(
    client.resolve(handle("three"), { signal: controller.signal }),
    /enough/,
  );
  await until(() => calls.length >= 1);
  first.release();
  await one;
  assert.equal((await two).user.userId, "two");
  assert.deepEqual(sizes(calls), [1, 2, 1]);
  assert.equal(calls[1]?.cancelled, false);
  controller.abort(new Error("enough"));
  await patient;
});

test("sixteen look-ups at most go alone at once", async (context) => {
  const first = held();
  const alone = held();
  let open = 0;
  let most = 0;
  const counted: Script = async (call) => {
    most = Math.max(most, ++open);
    await alone.script(call);
    open--;
    return answers()(call);
  };
  const { client, calls } = await start(context, [first.script, () => LOST, counted]);
  const all = numbered(41).map((identifier) => client.resolve(identifier));
  await until(() => calls.length >= 1);
  first.release();
  await until(() => open === 16);
  alone.release();
  await Promise.all(all);
  assert.equal(most, 16);
  assert.equal(calls.length, 42);
});

test("look-ups that wait to go alone when the client is closed fail, and the others end", async (context) => {
  context.mock.method(Math, "random", () => 0);
  const first = held();
  const alone = held();
  const { client, calls } = await start(context, [first.script, () => LOST, alone.script]);
  const all = numbered(41).map((identifier) => client.resolve(identifier));
  await until(() => calls.length >= 1);
  first.release();
  await until(() => calls.length === 18);
  client.close();
  const failed = await Promise.all(all.slice(17).map(failureOf));
  assert(failed.every((error) => error instanceof ClosedError));
  alone.release();
  await Promise.all(all.slice(0, 17));
});

test("a limit that a shared request meets is learned, and its look-ups are sent again", async (context) => {
  const limited: Script = (call) =>
    call.request.identifiers?.length > 10
      ? new Failure("INVALID_ARGUMENT", "BATCH_TOO_LARGE", { metadata: { limit: "10" } })
      : answers()(call);
  const first = held();
  const { client, calls } = await start(context, [first.script, limited], { retries: 0 });
  const all = numbered(26).map((identifier) => client.resolve(identifier));
  await until(() => calls.length >= 1);
  first.release();
  await Promise.all(all);
  assert.deepEqual(sizes(calls), [1, 25, 10, 10, 5]);
  await client.resolveMany(numbered(15));
  assert.deepEqual(sizes(calls).slice(5), [10, 5]);
});

test("look-ups that wait when the client is closed fail, and those that are sent end", async (context) => {
  let waiting: Promise<PolynymError> | undefined;
  const closes: Script = (call) => {
    waiting = failureOf(client.resolve(handle("waiting")));
    client.close();
    return answers()(call);
  };
  const { client } = await start(context, [closes]);
  assert.equal((await client.resolve(handle("sent"))).user.userId, "sent");
  assert((await waiting) instanceof ClosedError);
});
