// Watches over lost connections.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  OutOfRangeError,
  UnauthenticatedError,
  UnavailableError,
  type WatchOptions,
  connect,
} from "polynym";
import { Caller } from "../src/calls/caller.js";
import { Watch } from "../src/watch.js";
import { Failure, LOST, type Script, type SeenCall, scripted } from "./scripted.mjs";

const heartbeat = { kind: { $case: "heartbeat", value: {} }, resumeToken: "begun" };
const event = (number: number) => ({
  kind: { $case: "event", value: { eventId: `joe:${number}` } },
  resumeToken: `after ${number}`,
});

/** A watch with these responses, then an error, or none for as long as the caller listens. */
function responses(...items: unknown[]): Script {
  return async function* (call: SeenCall) {
    yield* items;
    while (!(items.at(-1) instanceof Failure) && !call.cancelled) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
}

async function start(context: TestContext, scripts: Script[], options: WatchOptions = {}) {
  const server = await scripted(...scripts);
  const client = connect(server.address);
  const watch = client.watch(options);
  context.after(() => {
    watch.close();
    client.close();
    server.stop();
  });
  return { client, watch, calls: server.calls };
}

async function take(watch: AsyncIterable<{ event: { eventId: string } }>, count: number) {
  const ids: string[] = [];
  for await (const { event } of watch) {
    if (ids.push(event.eventId) === count) {
      break;
    }
  }
  return ids;
}

test("a watch resumes after a lost connection, and drops repeated events", async (context) => {
  const { watch, calls } = await start(context, [
    responses(heartbeat, event(1), event(2), LOST),
    responses(new Failure("UNAVAILABLE", "WATCH_ENDED", { retryMs: 1 })),
    responses(heartbeat, event(2), event(3)),
  ]);
  await watch.started;
  assert.equal(watch.resumeToken, "begun");
  assert.deepEqual(await take(watch, 3), ["joe:1", "joe:2", "joe:3"]);
  assert.deepEqual(
    calls.map(({ request }) => request.resumeToken),
    ["", "after 2", "after 2"],
  );
  assert.equal(watch.resumeToken, "after 3");
});

test("the connection ends when the caller leaves the loop", async (context) => {
  const { watch, calls } = await start(context, [responses(heartbeat, event(1))]);
  await take(watch, 1);
  while (!calls[0]?.cancelled) {
    await new Promise(setImmediate);
  }
});

test("a watch has its users, its types and its token", async (context) => {
  const options = { tenant: "acme", userIds: ["joe"], types: [25], resumeToken: "earlier" };
  const { watch, calls } = await start(context, [responses(heartbeat)], options);
  await watch.started;
  assert.deepEqual({ ...calls[0]?.request }, options);
});

test("a watch ends with an error that connecting again does not mend", async (context) => {
  const expired = new Failure("OUT_OF_RANGE", "RESUME_EXPIRED");
  const { watch, calls } = await start(context, [
    responses(heartbeat, event(1), LOST),
    responses(expired),
  ]);
  await assert.rejects(take(watch, 9), OutOfRangeError);
  assert.equal(calls.length, 2);
  const refused = await start(context, [
    responses(new Failure("UNAUTHENTICATED", "CREDENTIAL_INVALID")),
  ]);
  await assert.rejects(refused.watch.started, UnauthenticatedError);
  await assert.rejects(take(refused.watch, 1), UnauthenticatedError);
});

test("a watch has three attempts to begin", async (context) => {
  const { watch, calls } = await start(context, [
    responses(new Failure("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 1 })),
  ]);
  await assert.rejects(watch.started, UnavailableError);
  await assert.rejects(take(watch, 1), UnavailableError);
  assert.equal(calls.length, 3);
});

test("closing the client ends its watches", async (context) => {
  const { client, watch, calls } = await start(context, [responses(heartbeat, event(1))]);
  const all = take(watch, 2);
  await watch.started;
  client.close();
  assert((await all).length <= 1);
  while (!calls[0]?.cancelled) {
    await new Promise(setImmediate);
  }
});

test("closing a watch ends its loop, and a signal fails it", async (context) => {
  const { watch } = await start(context, [responses(heartbeat)]);
  await watch.started;
  const events = take(watch, 1);
  watch.close();
  assert.deepEqual(await events, []);
  const controller = new AbortController();
  const signalled = await start(context, [responses(heartbeat)], { signal: controller.signal });
  await signalled.watch.started;
  const result = assert.rejects(take(signalled.watch, 1), /enough/);
  controller.abort(new Error("enough"));
  await result;
});

test("a watch without heartbeats goes on by another connection", async (context) => {
  // The server answers pings: only the missing responses tell.
  const next: Script = (call) =>
    responses(heartbeat, event(call.request.resumeToken === "" ? 1 : 2))(call);
  const { calls, stop, address } = await scripted(next);
  const caller = new Caller(address, {});
  const watch = new Watch(caller, {}, 200);
  context.after(() => {
    watch.close();
    caller.close();
    stop();
  });
  assert.deepEqual(await take(watch, 2), ["joe:1", "joe:2"]);
  assert.deepEqual([...new Set(calls.map(({ request }) => request.resumeToken))], ["", "after 1"]);
  assert.notEqual(calls[0]?.peer, calls.at(-1)?.peer);
});
