// Servers that cannot be reached, and several servers.
import assert from "node:assert/strict";
import { promises as dns } from "node:dns";
import { once } from "node:events";
import { constants, createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import {
  type Client,
  ClosedError,
  type ConnectOptions,
  PolynymError,
  UnavailableError,
  connect,
} from "polynym";
import { answers, numbered } from "./answers.mjs";
import { Failure, LOST, type Script, scripted, scriptedAt, until } from "./scripted.mjs";

const OK: Script = () => ({});

/** An address where nobody listens. */
async function vacant(): Promise<string> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  return `127.0.0.1:${port}`;
}

function client(
  context: TestContext,
  servers: string | string[],
  options: ConnectOptions = {},
): Client {
  const client = connect(servers, { timeoutMs: 60_000, ...options });
  context.after(() => client.close());
  return client;
}

async function server(context: TestContext, ...scripts: Script[]) {
  const server = await scripted(...scripts);
  context.after(server.stop);
  return server;
}

async function refused(call: Promise<unknown>) {
  const error = await call.catch((error) => error);
  assert(error instanceof UnavailableError, String(error));
  assert.equal(error.name, "UnavailableError");
  assert.match(error.message, /^the server \S+:\d+ cannot be reached$/);
  return error;
}

test("a call waits for its server until the deadline, and a change has not happened then", async (context) => {
  const servers = [await vacant(), await vacant()];
  const { registry } = client(context, servers[0] as string, { timeoutMs: 700 });
  const error = await refused(registry.createUser({}));
  assert.equal(error.message, `the server ${servers[0]} cannot be reached`);
  assert.match(String(error.cause), /ECONNREFUSED/);
  assert(error.requestId);
  const several = client(context, servers, { timeoutMs: 700 });
  await assert.rejects(several.directory.getUser({}), {
    message: `none of the servers ${servers.join(", ")} can be reached`,
  });
});

test("a call is sent once its server is there", async (context) => {
  const address = await vacant();
  const { directory } = client(context, address, { retries: 0 });
  const calls = [directory.getUser({}), directory.getUser({})];
  await new Promise((resolve) => setTimeout(resolve, 300));
  const { stop, calls: seen } = await scriptedAt(address, OK);
  context.after(stop);
  await Promise.all(calls);
  assert.equal(seen.length, 2);
});

test("a call need not wait", async (context) => {
  const { directory, admin } = client(context, await vacant(), { waitForReady: false });
  await refused(directory.getUser({}));
  await refused(admin.exportUsers({})[Symbol.asyncIterator]().next());
});

test("a shared request that finds no server is that of all its look-ups", async (context) => {
  let attempts = 0;
  const options = { waitForReady: false, observer: () => attempts++ };
  const connected = client(context, await vacant(), options);
  await Promise.all(numbered(9).map((identifier) => refused(connected.resolve(identifier))));
  assert.equal(attempts, 2);
});

test("a stream that its server refuses unseen is sent again", async (context) => {
  let streams = 0;
  const server = createHttp2Server().on("stream", (stream) => {
    if (++streams <= 4) {
      stream.on("error", () => {});
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    const headers = { ":status": 200, "content-type": "application/grpc", "grpc-status": "0" };
    stream.respond(headers, { endStream: true });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  for await (const _ of client(context, `127.0.0.1:${port}`).admin.exportUsers({})) {
    assert.fail();
  }
  assert.equal(streams, 5);
});

test("a watch waits for its server as a call does, until it has begun", async (context) => {
  await refused(client(context, await vacant(), { timeoutMs: 300 }).watch().started);
  await refused(client(context, await vacant(), { waitForReady: false }).watch().started);
  const closed = client(context, await vacant());
  const { started } = closed.watch();
  closed.close();
  await assert.rejects(started, ClosedError);
});

test("no further request is made once no server can be reached", async (context) => {
  const { address, stop } = await scripted(answers());
  const connected = client(context, address, { waitForReady: false });
  await connected.resolveMany(numbered(1));
  stop();
  const outcomes = await connected.resolveMany(numbered(2_500));
  await refused(Promise.reject(outcomes[0]));
  assert(outcomes.every((outcome) => outcome === outcomes[0]));
});

test("a name that has no address is an unreachable server", async (context) => {
  context.mock.method(dns, "lookup", async () => Promise.reject(new Error("ENOTFOUND")));
  await refused(
    client(context, "http://users.test:7171", { timeoutMs: 300 }).directory.getUser({}),
  );
});

test("a client connects at once if that is wanted", async (context) => {
  const { address, calls } = await server(context, OK);
  await (await client(context, address).connect()).directory.getUser({});
  assert.equal(calls.length, 1);
  await refused(client(context, await vacant(), { timeoutMs: 300 }).connect());
  await refused(client(context, await vacant()).connect({ timeoutMs: 300 }));
});

test("a signal ends the wait for a server", async (context) => {
  const controller = new AbortController();
  const { registry } = client(context, await vacant());
  const call = assert.rejects(registry.createUser({}, { signal: controller.signal }), /enough/);
  await new Promise(setImmediate);
  controller.abort(new Error("enough"));
  await call;
});

test("calls take turns among the servers that are connected", async (context) => {
  const servers = [await server(context, OK), await server(context, OK)];
  const { directory } = client(context, [
    ...servers.map(({ address }) => address),
    `http://${await vacant()}`,
  ]);
  const callsOf = () => servers.map(({ calls }) => calls.length);
  await until(async () => {
    await directory.getUser({});
    return callsOf().every((count) => count > 0);
  });
  const [before] = [callsOf()];
  for (let call = 0; call < 12; call++) {
    await directory.getUser({});
  }
  assert.deepEqual(
    callsOf().map((count, index) => count - before[index]!),
    [6, 6],
  );
});

test("calls go on at another server while one is away, and come back to it", async (context) => {
  const [first, second] = [await server(context, OK), await server(context, OK)];
  const { directory } = client(context, `${first.address},${second.address}`);
  const meet = (calls: unknown[]) => {
    const count = calls.length;
    return until(async () => {
      await directory.getUser({});
      return calls.length > count;
    });
  };
  await meet(first.calls);
  await meet(second.calls);
  first.stop();
  const count = second.calls.length;
  for (let call = 0; call < 10; call++) {
    await directory.getUser({});
  }
  assert(second.calls.length >= count + 9);
  const back = await scriptedAt(new URL(first.address).host, OK);
  context.after(back.stop);
  await meet(back.calls);
});

test("another attempt prefers another server", async (context) => {
  const servers = [await server(context, () => LOST), await server(context, OK)];
  const { directory } = client(
    context,
    servers.map(({ address }) => address),
  );
  await until(async () => {
    await directory.getUser({});
    return servers.every(({ calls }) => calls.length > 0);
  });
  const [lost, ok] = servers.map(({ calls }) => calls.length) as [number, number];
  for (let call = 0; call < 4; call++) {
    await directory.getUser({});
  }
  assert.equal(servers[1]!.calls.length, ok + 4);
  assert(servers[0]!.calls.length <= lost + 4);
});

test("a watch that is lost goes on with another server", async (context) => {
  const script: Script = ({ method, request }) => {
    const isFirst = request.resumeToken === "";
    const [number, end] = isFirst ? [1, LOST] : [2, new Failure("OUT_OF_RANGE", "RESUME_EXPIRED")];
    const kind = { $case: "event", value: { eventId: `joe:${number}` } };
    return method === "Watch" ? responses({ kind, resumeToken: `after ${number}` }, end) : {};
  };
  async function* responses(...items: unknown[]) {
    yield* items;
  }
  const servers = [await server(context, script), await server(context, script)];
  const connected = client(
    context,
    servers.map(({ address }) => address),
  );
  await until(async () => {
    await connected.directory.getUser({});
    return servers.every(({ calls }) => calls.length > 0);
  });
  const events = (async () => {
    for await (const _ of connected.watch());
  })();
  await assert.rejects(events, { reason: "RESUME_EXPIRED" });
  const watches = servers.map(({ calls }) => calls.filter(({ method }) => method === "Watch"));
  assert.deepEqual(
    watches.map(({ length }) => length),
    [1, 1],
  );
});

test("a name with several addresses is a list of servers, and is resolved anew", async (context) => {
  const first = await scriptedAt("127.0.0.1:0", OK);
  const port = new URL(first.address).port;
  const [second, third] = [
    await scriptedAt(`127.0.0.2:${port}`, OK),
    await scriptedAt(`127.0.0.3:${port}`, OK),
  ];
  context.after(() => [second, third].forEach(({ stop }) => stop()));
  let addresses = ["127.0.0.1", "127.0.0.2"];
  context.mock.method(dns, "lookup", async () =>
    addresses.map((address) => ({ address, family: 4 })),
  );
  const { directory } = client(context, `http://users.test:${port}`);
  const meet = (calls: unknown[]) =>
    until(async () => {
      await directory.getUser({});
      return calls.length > 0;
    });
  await meet(first.calls);
  await meet(second.calls);
  addresses = ["127.0.0.2", "127.0.0.3"];
  first.stop();
  await meet(third.calls);
});

test("a server's refusal is no lost connection", async (context) => {
  const full = () => new Failure("UNAVAILABLE", "STORE_UNAVAILABLE", { retryMs: 1 });
  const { address, calls } = await server(context, full);
  const error = await client(context, address)
    .directory.getUser({})
    .catch((error) => error);
  assert(error instanceof PolynymError);
  assert.equal(error.message, "a failure");
  assert.equal(calls.length, 3);
});
