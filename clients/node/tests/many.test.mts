// Look-ups of many identifiers.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  PermissionDeniedError,
  PolynymError,
  ResourceExhaustedError,
  UnavailableError,
  handle,
} from "polynym";
import { type Item, answers, found, nameOf, numbered, sizes } from "./answers.mjs";
import { Failure, LOST, type Script, start, until } from "./scripted.mjs";

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
  const { client, calls } = await start(context, [
    answers(item),
    answers(),
    tooLarge,
    () => LOST,
    answers(),
  ]);
  const outcomes = await client.resolveMany(numbered(4));
  assert(!outcomes.some((item) => item instanceof PolynymError));
  assert.deepEqual(sizes(calls), [4, 1, 2, 1, 1, 1]);
  assert.deepEqual(
    calls.map(({ method }) => method).filter((name) => name === "ResolveIdentity").length,
    3,
  );
});

test("the server's own limit of a batch is learned", async (context) => {
  const limited: Script = (call) =>
    call.request.identifiers.length > 100
      ? new Failure("INVALID_ARGUMENT", "BATCH_TOO_LARGE", {
          metadata: { limit: "100", value: "250" },
        })
      : answers()(call);
  const { client, calls } = await start(context, [limited]);
  assert.equal((await client.resolveMany(numbered(250))).length, 250);
  assert.deepEqual(sizes(calls), [250, 100, 100, 50]);
  await client.resolveMany(numbered(150));
  assert.deepEqual(sizes(calls).slice(4), [100, 50]);
});

test("a request that fails costs only its own identifiers, and the others are looked up", async (context) => {
  const full: Script = () => new Failure("RESOURCE_EXHAUSTED", "DISK_FULL");
  const { client, calls } = await start(context, [answers(), full, answers()]);
  const outcomes = await client.resolveMany(numbered(2_500));
  const failed = outcomes.map((item) => item instanceof ResourceExhaustedError);
  assert.deepEqual([failed.indexOf(true), failed.lastIndexOf(true)], [1_000, 1_999]);
  assert.equal(failed.filter((is) => is).length, 1_000);
  assert.deepEqual(sizes(calls), [1_000, 1_000, 500]);
});

test("no further request is made after a failure that all would have", async (context) => {
  const denied: Script = () => new Failure("PERMISSION_DENIED", "ROLE_DENIED");
  const { client, calls } = await start(context, [answers(), denied]);
  const outcomes = await client.resolveMany(numbered(3_500));
  assert(!(outcomes[999] instanceof PolynymError));
  assert(outcomes.slice(1_000).every((item) => item instanceof PermissionDeniedError));
  assert.equal(calls.length, 2);
});

test("what waits to be asked again has the failure that all others would have, too", async (context) => {
  const busy: Item = () => new Failure("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 1 });
  const large: Item = () => new Failure("RESOURCE_EXHAUSTED", "USER_TOO_LARGE");
  const denied: Script = () => new Failure("PERMISSION_DENIED", "ROLE_DENIED");
  const { client, calls } = await start(context, [answers(busy), answers(large), denied]);
  const outcomes = await client.resolveMany(numbered(2_500));
  assert(outcomes.every((item) => item instanceof PermissionDeniedError));
  assert.deepEqual(sizes(calls), [1_000, 1_000, 1]);
});

test("a signal ends the wait for what the server has refused", async (context) => {
  const busy: Item = () => new Failure("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 15_000 });
  let answered!: () => void;
  const sent = new Promise<void>((resolve) => (answered = resolve));
  const { client } = await start(context, [answers(busy)], { observer: () => answered() });
  const controller = new AbortController();
  const result = client.resolveMany(numbered(2), { signal: controller.signal });
  await sent;
  controller.abort(new Error("enough"));
  for (const outcome of await result) {
    assert(outcome instanceof PolynymError && outcome.code === "CANCELLED");
  }
});

test("lost attempts and refusals of an item are three in all", async (context) => {
  const busy: Item = () => new Failure("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 1 });
  const lost: Script = () => LOST;
  const { client, calls } = await start(context, [lost, answers(busy), lost, answers()]);
  const [first] = await client.resolveMany(numbered(2));
  assert(first instanceof UnavailableError);
  assert.equal(calls.length, 3);
});

test("a signal ends the look-ups of many, and keeps the answers that there are", async (context) => {
  const { client, calls } = await start(context, [answers(), () => new Promise(() => {})]);
  const controller = new AbortController();
  const result = client.resolveMany(numbered(2_500), { signal: controller.signal });
  await until(() => calls.length === 2);
  controller.abort(new Error("enough"));
  const outcomes = await result;
  assert(!(outcomes[999] instanceof PolynymError));
  const [first, last] = [outcomes[1_000], outcomes[2_499]];
  assert(first instanceof PolynymError && first.code === "CANCELLED" && last === first);
  assert.match(String(first.cause), /enough/);
});

test("items that the server refuses for now are asked for again together, three times in all", async (context) => {
  const busy = new Failure("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 1 });
  const item: Item = (identifier) => (/[01]$/.test(nameOf(identifier)) ? busy : found(identifier));
  const all = await start(context, [answers(item), answers(item), answers()]);
  const outcomes = await all.client.resolveMany(numbered(4));
  assert(!outcomes.some((item) => item instanceof PolynymError));
  assert.deepEqual(sizes(all.calls), [4, 2, 2]);
  const none = await start(context, [answers(item)]);
  const [first] = await none.client.resolveMany(numbered(4));
  assert(first instanceof UnavailableError);
  assert.deepEqual(sizes(none.calls), [4, 2, 2]);
});
