// How calls end: retries, unknown outcomes, signals and closed clients.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Client,
  ClosedError,
  Consistency,
  NotFoundError,
  OutcomeUnknownError,
  UnavailableError,
  email,
} from "polynym";
import { Budget } from "../src/calls/retries.js";
import { Server } from "../src/calls/servers.js";
import { OK, type Script, failureOf, fails, lost, never, start, until } from "./scripted.mjs";

test("a change whose answers are lost has an unknown outcome", async (context) => {
  const { client, calls } = await start(context, [lost]);
  const error = await failureOf(client.registry.deleteUser({ userId: "a" }));
  assert(error instanceof OutcomeUnknownError);
  assert.equal(calls.length, 3);
  assert.equal(error.requestId, calls[0]?.request.requestId);
});

test("a later answer settles a lost change, unless nothing was done", async (context) => {
  const unavailable = fails("UNAVAILABLE", "STORE_UNAVAILABLE");
  const { client, calls } = await start(context, [
    lost,
    fails("NOT_FOUND", "USER_NOT_FOUND"),
    lost,
    unavailable,
  ]);
  assert((await failureOf(client.registry.deleteUser({ userId: "a" }))) instanceof NotFoundError);
  const error = await failureOf(client.registry.deleteUser({ userId: "a" }));
  assert(error instanceof OutcomeUnknownError);
  assert.equal(error.reason, "STORE_UNAVAILABLE");
  assert.equal(calls.length, 5);
});

test("a refused credential does not settle a lost change", async (context) => {
  const { client } = await start(context, [lost, fails("UNAUTHENTICATED", "CREDENTIAL_INVALID")]);
  assert(
    (await failureOf(client.registry.deleteUser({ userId: "a" }))) instanceof OutcomeUnknownError,
  );
});

test("what the server has not done is no unknown outcome", async (context) => {
  const { client, calls } = await start(context, [
    fails("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 1 }),
  ]);
  assert(
    (await failureOf(client.registry.deleteUser({ userId: "a" }))) instanceof UnavailableError,
  );
  assert.equal(calls.length, 3);
});

test("a change without a request id is not retried once it may have happened", async (context) => {
  const unavailable = fails("UNAVAILABLE", "STORE_UNAVAILABLE");
  const { client, calls } = await start(context, [unavailable, lost, OK]);
  const error = await failureOf(client.inbox.markRead({ userId: "a" }));
  assert(error instanceof OutcomeUnknownError);
  assert.equal(error.requestId, undefined);
  assert.equal(calls.length, 2);
});

test("an unknown outcome at the server is retried", async (context) => {
  const { client, calls } = await start(context, [fails("UNKNOWN", "OUTCOME_UNKNOWN"), OK]);
  await client.registry.enableUser({ userId: "a" });
  assert.equal(calls.length, 2);
});

test("retries can be turned off, for a client and for a call", async (context) => {
  const { client, calls } = await start(context, [lost], { retries: 0 });
  assert((await failureOf(client.directory.getUser({}))) instanceof UnavailableError);
  assert.equal(calls.length, 1);
  await failureOf(client.directory.getUser({}, { retries: 1 }));
  assert.equal(calls.length, 3);
  await assert.rejects(client.directory.getUser({}, { retries: -1 }), RangeError);
  await assert.rejects(client.directory.getUser({}, { timeoutMs: 0 }), RangeError);
});

test("a signal ends a call, and the wait before an attempt", async (context) => {
  const wait = fails("RESOURCE_EXHAUSTED", "RATE_LIMITED", { retryMs: 15_000 });
  const { client, calls } = await start(context, [never, wait], { timeoutMs: 20_000 });
  const aborted = async (call: (client: Client, signal: AbortSignal) => Promise<unknown>) => {
    const controller = new AbortController();
    const reason = new Error("no longer needed");
    const sent = calls.length;
    const result = assert.rejects(call(client, controller.signal), reason);
    await until(() => calls.length > sent);
    controller.abort(reason);
    await result;
  };
  await aborted((client, signal) => client.directory.getUser({}, { signal }));
  await aborted((client, signal) => client.directory.getUser({}, { signal }));
  await until(() => calls[0]?.cancelled);
  assert.equal(calls.length, 2);
  await assert.rejects(
    client.directory.getUser({}, { signal: AbortSignal.abort(new Error("before")) }),
    /before/,
  );
  assert.equal(calls.length, 2);
});

test("a change that its caller ends has an unknown outcome once it may have happened", async (context) => {
  const wait = fails("RESOURCE_EXHAUSTED", "RATE_LIMITED", { retryMs: 50_000 });
  const { client, calls } = await start(context, [never, lost, wait]);
  for (const attempts of [1, 2]) {
    const controller = new AbortController();
    const reason = new Error("no longer needed");
    const [sent, result] = [
      calls.length,
      failureOf(client.registry.enableUser({}, { signal: controller.signal })),
    ];
    await until(() => calls.length === sent + attempts);
    controller.abort(reason);
    const error = await result;
    assert(error instanceof OutcomeUnknownError);
    assert.equal(error.cause, reason);
    assert.equal(error.requestId, calls.at(-1)?.request.requestId);
  }
});

test("calls under way end before a closed client, and further ones fail by one error", async (context) => {
  let answer!: () => void;
  const answered = new Promise<object>((resolve) => (answer = () => resolve({})));
  const { client, calls } = await start(context, [() => answered]);
  const call = client.directory.getUser({});
  await until(() => calls.length === 1);
  client.close();
  const watch = client.watch();
  const entrances: Promise<unknown>[] = [
    client.directory.getUser({}),
    client.registry.enableUser({}),
    client.resolve(email("a@b.c")),
    client.resolve(email("a@b.c"), { consistency: Consistency.LINEARIZABLE }),
    client.resolveMany([email("a@b.c")]),
    client.getOrCreate(email("a@b.c")),
    client.search().next(),
    client.history("a").next(),
    client.admin.exportUsers({})[Symbol.asyncIterator]().next(),
    client.connect(),
    watch.started,
    watch[Symbol.asyncIterator]().next(),
  ];
  for (const entrance of entrances) {
    const error = await failureOf(entrance);
    assert(error instanceof ClosedError);
    assert.deepEqual([error.code, error.message], ["CANCELLED", "the client is closed"]);
  }
  answer();
  await call;
  assert.equal(calls.length, 1);
});

test("closing a client ends waiting calls: what may have happened stays unknown", async (context) => {
  const wait = fails("RESOURCE_EXHAUSTED", "RATE_LIMITED", { retryMs: 50_000 });
  let ended = 0;
  const observer = () => ended++;
  const { client, calls } = await start(context, [lost, wait, wait], { observer });
  const change = failureOf(client.registry.enableUser({}));
  await until(() => ended === 2);
  const read = failureOf(client.directory.getUser({}));
  await until(() => ended === 3);
  client.close();
  const error = await change;
  assert(error instanceof OutcomeUnknownError);
  assert.equal(error.requestId, calls[0]?.request.requestId);
  assert((await read) instanceof ClosedError);
});

test("a lasting outage uses up the budget of retries, and answers fill it", async (context) => {
  const outage = Array<Script>(30).fill(lost);
  const { client, calls } = await start(context, [...outage, OK]);
  const call = () => client.directory.getUser({}).catch(() => undefined);
  await call();
  await call();
  assert.equal(calls.length, 5);
  for (let count = 0; count < 25; count++) {
    await call();
  }
  assert.equal(calls.length, 30);
  for (let count = 0; count < 70; count++) {
    await call();
  }
  assert.equal(calls.length, 100);
});

test("calls that their callers cancel do not use up the retries", async (context) => {
  const { client, calls } = await start(context, [...Array<Script>(9).fill(never), lost, OK]);
  for (let count = 1; count <= 9; count++) {
    const controller = new AbortController();
    const call = assert.rejects(
      client.directory.getUser({}, { signal: controller.signal }),
      /enough/,
    );
    await until(() => calls.length === count);
    controller.abort(new Error("enough"));
    await call;
  }
  await client.directory.getUser({});
  assert.equal(calls.length, 11);
});

test("calls that are lost with one connection take one token together", () => {
  const budget = new Budget();
  const [first, second] = ["a", "b"].map((name) => new Server(name, () => ({}) as never));
  const loss = { code: "UNAVAILABLE", message: "" } as const;
  for (const server of [first, second]) {
    for (let call = 0; call < 20; call++) {
      budget.failed(loss, { server, sent: 1 });
    }
  }
  const rest = () => {
    let calls = 0;
    for (; budget.allows; calls++) {
      budget.failed({ ...loss, reason: "STORE_UNAVAILABLE" }, { server: first, sent: 1 });
    }
    return calls;
  };
  assert.equal(rest(), 3);
});

test("errors without an answer of the server have words of this client", async (context) => {
  const texts: [Script, string][] = [
    [lost, "the connection was lost before the answer came"],
    [fails("INTERNAL"), "the connection was lost before the answer came"],
    [fails("UNIMPLEMENTED"), "no answer of a server of Polynym: UNIMPLEMENTED"],
    [never, "the deadline has passed"],
  ];
  const { client } = await start(
    context,
    texts.map(([script]) => script),
    { retries: 0 },
  );
  for (const [, text] of texts) {
    const error = await failureOf(client.directory.getUser({}, { timeoutMs: 500 }));
    assert.equal(error.message, text);
    assert(error.cause instanceof Error);
  }
});

test("only a missing owner is created, and only for a taken identity it is looked up again", async (context) => {
  const missing = fails("NOT_FOUND", "IDENTITY_NOT_FOUND");
  const exists = fails("ALREADY_EXISTS", "USER_EXISTS");
  const noTenant = fails("NOT_FOUND", "TENANT_NOT_FOUND");
  const { client, calls } = await start(context, [missing, exists, noTenant]);
  const reason = async () => (await failureOf(client.getOrCreate(email("a@b.c")))).reason;
  assert.deepEqual([await reason(), calls.length], ["USER_EXISTS", 2]);
  assert.deepEqual([await reason(), calls.length], ["TENANT_NOT_FOUND", 3]);
});
