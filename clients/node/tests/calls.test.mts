// The rules of every call: request ids, retries, deadlines, errors.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AlreadyExistsError,
  type Code,
  DeadlineExceededError,
  InvalidArgumentError,
  OutcomeUnknownError,
  ResourceExhaustedError,
  UnavailableError,
} from "polynym";
import {
  Failure,
  OK,
  SERVICES,
  type Script,
  type SeenCall,
  failureOf,
  fails,
  lost,
  never,
  start,
  until,
} from "./scripted.mjs";

const UUID4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
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
  const stubs = [
    client.directory,
    client.registry,
    client.inbox,
    client.admin,
  ] as unknown as Record<string, (request: object) => Promise<unknown>>[];
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
  assert.deepEqual(
    calls.map((call) => call.method),
    expected,
  );
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
  assert.deepEqual(
    { ...error, requestId: undefined },
    {
      name: "AlreadyExistsError",
      code: "ALREADY_EXISTS",
      reason: "IDENTITY_TAKEN",
      requestId: undefined,
      ...details,
    },
  );
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
  const { client, calls } = await start(
    context,
    codes.map(([code, reason]) => fails(code, reason)),
  );
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
  const { client, calls } = await start(context, [
    fails("RESOURCE_EXHAUSTED", "OVERLOADED", { retryMs: 90_000 }),
  ]);
  const begin = performance.now();
  const error = await failureOf(client.directory.getUser({ userId: "a" }, { timeoutMs: 80_000 }));
  assert(performance.now() - begin < 70_000);
  assert(error instanceof ResourceExhaustedError);
  assert.equal(error.retryAfterMs, 90_000);
  assert.equal(calls.length, 1);
});

test("a deadline ends the call with all its attempts", async (context) => {
  const { client } = await start(context, [lost, never], { timeoutMs: 400 });
  const begin = performance.now();
  assert(
    (await failureOf(client.directory.getUser({ userId: "a" }))) instanceof DeadlineExceededError,
  );
  assert(
    (await failureOf(client.registry.enableUser({}, { timeoutMs: 50 }))) instanceof
      OutcomeUnknownError,
  );
  assert(performance.now() - begin < 30_000);
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
  assert((await failureOf(all())) instanceof InvalidArgumentError);
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
  const expires = async () =>
    assert((await failureOf(resolve(300))) instanceof DeadlineExceededError);
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
