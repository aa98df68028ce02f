// The rules of every call: request ids, retries, deadlines, errors.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  AlreadyExistsError,
  type Client,
  ClosedError,
  type Code,
  type ConnectOptions,
  Consistency,
  DeadlineExceededError,
  InvalidArgumentError,
  NotFoundError,
  OutcomeUnknownError,
  PolynymError,
  ResourceExhaustedError,
  UnavailableError,
  connect,
  email,
} from "polynym";
import { Failure, LOST, SERVICES, type Script, type SeenCall, scripted } from "./scripted.mjs";

const UUID4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const OK: Script = () => ({});
const fails = (...parts: ConstructorParameters<typeof Failure>): Script => () => new Failure(...parts);
const lost: Script = () => LOST;
const never: Script = () => new Promise(() => {});

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

async function failureOf(call: Promise<unknown>): Promise<PolynymError> {
  const error = await call.then(
    () => assert.fail("the call succeeds"),
    (error) => error,
  );
  assert(error instanceof PolynymError, String(error));
  return error;
}

test("a lost change is sent again with the same request id", async (context) => {
  const { client, calls } = await start(context, [lost, lost, OK]);
  await client.registry.createUser({ user: { displayName: "Joe" } });
  assert.equal(calls.length, 3);
  const [first, ...others] = calls.map((call) => call.request.requestId);
  assert.match(first, UUID4);
  assert.deepEqual(others, [first, first]);
});

test("lost connections have one code, by all names of the transport", async (context) => {
  for (const code of ["CANCELLED", "INTERNAL", "UNAVAILABLE", "UNKNOWN"] as const) {
    const { client, calls } = await start(context, [fails(code)], { retries: 1 });
    const error = await failureOf(client.directory.getUser({ userId: "a" }));
    assert(error instanceof UnavailableError, code);
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(calls.length, 2);
  }
});

test("each change has a request id of its own, or the caller's", async (context) => {
  const { client, calls } = await start(context, [OK]);
  await client.registry.disableUser({ userId: "a" });
  await client.registry.disableUser({ userId: "a" });
  await client.registry.disableUser({ userId: "a", requestId: "mine" });
  const ids = calls.map((call) => call.request.requestId);
  assert.notEqual(ids[0], ids[1]);
  assert.equal(ids[2], "mine");
});

test("every method of every service can be called", async (context) => {
  const { client, calls } = await start(context, [OK], { tenant: "acme" });
  const stubs = [client.directory, client.registry, client.inbox, client.admin] as unknown as Record<
    string,
    (request: object) => Promise<unknown>
  >[];
  const expected: string[] = [];
  for (const [index, service] of SERVICES.entries()) {
    for (const [name, method] of Object.entries(service.methods)) {
      assert.equal(typeof stubs[index]![name], "function", name);
      if (!method.responseStream) {
        await stubs[index]![name]!({});
        expected.push(method.name);
      }
    }
  }
  assert.deepEqual(calls.map((call) => call.method), expected);
  for (const { method, request } of calls) {
    assert.equal(request.tenant ?? "acme", "acme", method);
    assert.match(request.requestId ?? "00000000-0000-4000-8000-000000000000", UUID4, method);
  }
});

test("errors have the class of their code and the details of the server", async (context) => {
  const details = { field: "user.identities[0]", metadata: { owner: "b", limit: "7" } };
  const { client } = await start(context, [fails("ALREADY_EXISTS", "IDENTITY_TAKEN", details)]);
  const error = await failureOf(client.registry.createUser({}));
  assert(error instanceof AlreadyExistsError);
  assert.equal(error.name, "AlreadyExistsError");
  assert.equal(error.message, "a failure");
  assert.deepEqual({ ...error, requestId: undefined }, {
    name: "AlreadyExistsError",
    code: "ALREADY_EXISTS",
    reason: "IDENTITY_TAKEN",
    requestId: undefined,
    ...details,
  });
  assert.match(error.requestId ?? "", UUID4);
  assert.equal(error.owner, "b");
});

test("definite errors are not retried", async (context) => {
  const codes: [Code, string][] = [
    ["NOT_FOUND", "USER_NOT_FOUND"],
    ["ABORTED", "ETAG_MISMATCH"],
    ["RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED"],
    ["INTERNAL", "INTERNAL"],
  ];
  const { client, calls } = await start(context, codes.map(([code, reason]) => fails(code, reason)));
  for (const [code, reason] of codes) {
    const error = await failureOf(client.registry.enableUser({ userId: "a" }));
    assert.deepEqual([error.code, error.reason], [code, reason]);
  }
  assert.equal(calls.length, codes.length);
});

test("an exhausted resource is retried after the delay that the server asks for", async (context) => {
  const exhausted = fails("RESOURCE_EXHAUSTED", "RATE_LIMITED", { retryMs: 120 });
  const { client, calls } = await start(context, [exhausted, OK]);
  const begin = performance.now();
  await client.directory.getUser({ userId: "a" });
  assert(performance.now() - begin >= 119);
  assert.equal(calls.length, 2);
});

test("a delay beyond the deadline ends the call at once", async (context) => {
  const { client, calls } = await start(context, [fails("RESOURCE_EXHAUSTED", "OVERLOADED", { retryMs: 90_000 })]);
  const begin = performance.now();
  const error = await failureOf(client.directory.getUser({ userId: "a" }, { timeoutMs: 80_000 }));
  assert(performance.now() - begin < 70_000);
  assert(error instanceof ResourceExhaustedError);
  assert.equal(error.retryAfterMs, 90_000);
  assert.equal(calls.length, 1);
});

test("a change whose answers are lost has an unknown outcome", async (context) => {
  const { client, calls } = await start(context, [lost]);
  const error = await failureOf(client.registry.deleteUser({ userId: "a" }));
  assert(error instanceof OutcomeUnknownError);
  assert.equal(calls.length, 3);
  assert.equal(error.requestId, calls[0]?.request.requestId);
});

test("a later answer settles a lost change, unless nothing was done", async (context) => {
  const unavailable = fails("UNAVAILABLE", "STORE_UNAVAILABLE");
  const { client, calls } = await start(context, [lost, fails("NOT_FOUND", "USER_NOT_FOUND"), lost, unavailable]);
  assert(await failureOf(client.registry.deleteUser({ userId: "a" })) instanceof NotFoundError);
  const error = await failureOf(client.registry.deleteUser({ userId: "a" }));
  assert(error instanceof OutcomeUnknownError);
  assert.equal(error.reason, "STORE_UNAVAILABLE");
  assert.equal(calls.length, 5);
});

test("a refused credential does not settle a lost change", async (context) => {
  const { client } = await start(context, [lost, fails("UNAUTHENTICATED", "CREDENTIAL_INVALID")]);
  assert(await failureOf(client.registry.deleteUser({ userId: "a" })) instanceof OutcomeUnknownError);
});

test("what the server has not done is no unknown outcome", async (context) => {
  const { client, calls } = await start(context, [fails("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 1 })]);
  assert(await failureOf(client.registry.deleteUser({ userId: "a" })) instanceof UnavailableError);
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

test("a deadline ends the call with all its attempts", async (context) => {
  const { client } = await start(context, [lost, never], { timeoutMs: 400 });
  const begin = performance.now();
  assert(await failureOf(client.directory.getUser({ userId: "a" })) instanceof DeadlineExceededError);
  assert(await failureOf(client.registry.enableUser({}, { timeoutMs: 50 })) instanceof OutcomeUnknownError);
  assert(performance.now() - begin < 30_000);
});

test("retries can be turned off, for a client and for a call", async (context) => {
  const { client, calls } = await start(context, [lost], { retries: 0 });
  assert(await failureOf(client.directory.getUser({})) instanceof UnavailableError);
  assert.equal(calls.length, 1);
  await failureOf(client.directory.getUser({}, { retries: 1 }));
  assert.equal(calls.length, 3);
  await assert.rejects(client.directory.getUser({}, { retries: -1 }), RangeError);
  await assert.rejects(client.directory.getUser({}, { timeoutMs: 0 }), RangeError);
});

test("a signal ends a call, and the wait before an attempt", async (context) => {
  const wait = fails("RESOURCE_EXHAUSTED", "RATE_LIMITED", { retryMs: 990 });
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
  await assert.rejects(client.directory.getUser({}, { signal: AbortSignal.abort(new Error("before")) }), /before/);
  assert.equal(calls.length, 2);
});

test("a change that its caller ends has an unknown outcome once it may have happened", async (context) => {
  const wait = fails("RESOURCE_EXHAUSTED", "RATE_LIMITED", { retryMs: 50_000 });
  const { client, calls } = await start(context, [never, lost, wait]);
  for (const attempts of [1, 2]) {
    const controller = new AbortController();
    const reason = new Error("no longer needed");
    const [sent, result] = [calls.length, failureOf(client.registry.enableUser({}, { signal: controller.signal }))];
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
  const { client, calls } = await start(context, [lost, wait, wait]);
  const change = failureOf(client.registry.enableUser({}));
  await until(() => calls.length === 2);
  const read = failureOf(client.directory.getUser({}));
  await until(() => calls.length === 3);
  await new Promise(setImmediate);
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

test("errors without an answer of the server have words of this client", async (context) => {
  const texts: [Script, string][] = [
    [lost, "the connection was lost before the answer came"],
    [fails("INTERNAL"), "the connection was lost before the answer came"],
    [fails("UNIMPLEMENTED"), "no answer of a server of Polynym: UNIMPLEMENTED"],
    [never, "the deadline has passed"],
  ];
  const { client } = await start(context, texts.map(([script]) => script), { retries: 0 });
  for (const [, text] of texts) {
    const error = await failureOf(client.directory.getUser({}, { timeoutMs: 500 }));
    assert.equal(error.message, text);
    assert(error.cause instanceof Error);
  }
});

test("calls have the token, the client's name and the caller's headers", async (context) => {
  const { client, calls } = await start(context, [OK], { token: "secret" });
  await client.directory.getUser({}, { headers: { "polynym-reason": "support" } });
  const headers = calls[0]!.headers;
  assert.deepEqual(headers.get("authorization"), ["Bearer secret"]);
  assert.deepEqual(headers.get("polynym-reason"), ["support"]);
  assert.match(String(headers.get("user-agent")), /^polynym-node\/\d+\.\d+\.\d+ /);
});

test("streams have typed errors and stop at the caller's break", async (context) => {
  async function* users() {
    yield {};
    yield {};
    yield new Failure("INVALID_ARGUMENT", "FILTER_INVALID");
  }
  async function* endless(call: SeenCall) {
    while (!call.cancelled) {
      yield {};
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  const { client, calls } = await start(context, [users, endless]);
  let received = 0;
  const all = async () => {
    for await (const _ of client.admin.exportUsers({})) {
      received++;
    }
  };
  assert(await failureOf(all()) instanceof InvalidArgumentError);
  assert.equal(received, 2);
  for await (const _ of client.admin.exportUsers({})) {
    break;
  }
  await until(() => calls[1]?.cancelled);
});

test("two deadlines in a row open a new connection, and the calls on the former one go on", async (context) => {
  let answer = () => {};
  const later: Script = () => new Promise((resolve) => (answer = () => resolve({})));
  const { client, calls } = await start(context, [OK, later, never, OK, never, never, OK]);
  const resolve = (timeoutMs?: number) => client.directory.resolveIdentity({}, { timeoutMs });
  const expires = async () => assert((await failureOf(resolve(300))) instanceof DeadlineExceededError);
  await resolve();
  const patient = resolve();
  await until(() => calls.length === 2);
  await expires();
  await resolve();
  await expires();
  await expires();
  assert.equal(new Set(calls.map(({ peer }) => peer)).size, 1);
  await resolve();
  assert.equal(new Set(calls.map(({ peer }) => peer)).size, 2);
  answer();
  await patient;
});
