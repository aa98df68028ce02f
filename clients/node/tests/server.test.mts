// The client, its package and its page on a real server.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect, promisify } from "node:util";
import {
  AlreadyExistsError,
  type AttributeValue,
  type Client,
  Event,
  EventType,
  InvalidArgumentError,
  NotFoundError,
  PolynymError,
  Reason,
  State,
  User,
  connect,
  email,
  errorOfStatus,
  eventTypeOf,
  handle,
  phone,
} from "polynym";
import { type TestServer, startServer } from "polynym/testing";
import { SERVICES } from "./scripted.mjs";

const root = new URL("../../", import.meta.url);
const text = (value: string): AttributeValue => ({ kind: { $case: "stringValue", value } });

let server: TestServer;
let client: Client;

before(async () => {
  server = await startServer();
  client = connect(server.address, { timeoutMs: 30_000 });
});

after(async () => {
  client.close();
  await server.stop();
});

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) {
    all.push(item);
  }
  return all;
}

test("a user is created, found by each name, searched and watched", async () => {
  const watch = client.watch();
  await watch.started;
  const identities = [email("Ann@Example.com"), phone("(415) 555-2300", "US")].map(
    (identifier) => ({ identifier }),
  );
  const attributes = { team: text("search") };
  const { user } = await client.registry.createUser({
    user: { displayName: "Ann", identities, attributes },
  });
  assert(user);
  assert.equal(user.state, State.ACTIVE);
  const [byEmail, byPhone] = await Promise.all([
    client.resolve(email("ANN@example.com")),
    client.resolve(phone("+1 415 555 2300"), { fields: ["user_id"] }),
  ]);
  assert.deepEqual(byEmail.user, user);
  assert.deepEqual(byPhone.user, User.fromPartial({ userId: user.userId }));
  assert.deepEqual(byPhone.identity, user.identities[1]);
  const named = await client.getUser(user.userId, { fields: ["display_name"] });
  assert.deepEqual(named, User.fromPartial({ displayName: "Ann" }));
  await client.registry.disableUser({ userId: user.userId });
  assert.equal(
    (await client.resolve(email("ann@example.com"), { showDisabled: true })).user.state,
    State.DISABLED,
  );
  assert.equal(
    (await collect(client.search('attributes.team = "search"', { pageSize: 1 }))).length,
    1,
  );
  const events = await collect(client.history(email("ann@example.com"), { pageSize: 1 }));
  assert.deepEqual(
    events.map(({ change }) => change?.$case),
    ["userDisabled", "userCreated"],
  );
  const disabled = client.history(user.userId, { types: [EventType.USER_DISABLED] });
  assert.deepEqual(await collect(disabled), [events[0]]);
  for await (const { event } of watch) {
    assert.deepEqual(event, events[1]);
    break;
  }
});

test("errors say what is wrong", async () => {
  const user = { identities: [{ identifier: handle("bob") }] };
  const created = await client.registry.createUser({ user });
  const error = await client.registry.createUser({ user }).catch((error) => error);
  assert(error instanceof AlreadyExistsError);
  assert.equal(error.reason, "IDENTITY_TAKEN");
  assert.equal(error.field, "user.identities[0].identifier");
  assert.equal(error.owner, created.user?.userId);
  await assert.rejects(client.resolve(handle("nobody")), NotFoundError);
  const [bob, nobody, faulty] = await client.resolveMany([
    handle("bob"),
    handle("nobody"),
    email("no address"),
  ]);
  assert(faulty instanceof InvalidArgumentError);
  assert.equal(faulty.field, "identifier");
  assert(!inspect(faulty).includes("identifiers["), inspect(faulty));
  assert(bob && !(bob instanceof PolynymError) && bob.user.userId === created.user?.userId);
  assert(nobody instanceof NotFoundError);
  const { results } = await client.directory.batchGetUsers({ userIds: ["no-id"] });
  assert(results[0]?.outcome?.$case === "error");
  assert.equal(errorOfStatus(results[0].outcome.value).reason, "USER_ID_INVALID");
});

test("a user is created by the first caller who wants it, and found by all others", async () => {
  const identifier = email("Carl@example.com");
  const user = { displayName: "Carl", identities: [{ identifier: handle("carl") }] };
  const results = await Promise.all(
    Array.from({ length: 32 }, () => client.getOrCreate(identifier, user)),
  );
  assert.equal(results.filter(({ created }) => created).length, 1);
  assert.equal(new Set(results.map(({ user }) => user.userId)).size, 1);
  const [{ user: carl }] = results as [(typeof results)[0]];
  assert.deepEqual(
    carl.identities.map(({ identifier }) => identifier?.kind?.$case),
    ["email", "handle"],
  );
  assert.deepEqual(await client.getOrCreate(handle("carl"), user), { user: carl, created: false });
  // The handle, not the identifier, is taken.
  await assert.rejects(client.getOrCreate(email("carla@example.com"), user), AlreadyExistsError);
  await assert.rejects(client.getOrCreate(email("a@b.c"), {}, { tenant: "No Tenant" }), {
    code: "INVALID_ARGUMENT",
  });
});

test("all pages of every list are read", async () => {
  const tenant = "lists";
  const users = await Promise.all(
    ["one", "two", "three"].map((name) =>
      client.getOrCreate(handle(name), { attributes: { [name]: text("x") } }, { tenant }),
    ),
  );
  const userId = users[0]!.user.userId;
  const recipients = [{ recipient: { $case: "userId" as const, value: userId } }];
  const pages = { tenant, pageSize: 1 };
  for (const subject of ["first", "second"]) {
    await client.inbox.sendNotice({ tenant, recipients, notice: { subject } });
  }
  const lists: [AsyncIterable<unknown>, number][] = [
    [client.search("", pages), 3],
    [client.find({ ...pages, text: "@three, @two" }), 2],
    [client.history(userId, pages), 1],
    [client.events(pages), 3],
    [client.attributeNames(pages), 3],
    [client.tenantHistory(pages), 1],
    [client.bulkChanges(pages), 0],
    [client.notices({ ...pages, userId }), 2],
  ];
  for (const [index, [list, count]] of lists.entries()) {
    assert.equal((await collect(list)).length, count, String(index));
  }
  const tenants = await collect(client.tenants({ pageSize: 1 }));
  assert(tenants.some(({ tenant }) => tenant === "lists") && tenants.length > 1);
});

test("every list of the API has an iterator", () => {
  const lists = SERVICES.flatMap(({ methods }) => Object.values(methods)).filter(
    ({ requestType, responseType }) => {
      const [request, response] = [requestType, responseType].map(
        (type) => type.fromPartial({}) as object,
      );
      return "pageToken" in request! && "nextPageToken" in response!;
    },
  );
  assert.deepEqual(lists.map(({ name }) => name).sort(), [
    "FindUsers",
    "ListAttributeNames",
    "ListBulkChanges",
    "ListEvents",
    "ListHistory",
    "ListNotices",
    "ListTenantHistory",
    "ListTenants",
    "SearchUsers",
  ]);
});

test("events tell their types", () => {
  const names = Object.keys(EventType).filter(
    (name) => /^[A-Z]/.test(name) && name !== "UNSPECIFIED",
  );
  for (const name of names) {
    const $case = name.toLowerCase().replace(/_./g, ([, letter]) => letter!.toUpperCase());
    const event = Event.fromPartial({ change: { $case, value: {} } as never });
    assert.equal(event.change?.$case, $case);
    assert.equal(EventType[eventTypeOf(event)], name);
  }
  assert.equal(eventTypeOf(Event.fromPartial({})), EventType.UNSPECIFIED);
});

test("there is a constant for each reason of the API", () => {
  const page = readFileSync(new URL("../../docs/api.md", root), "utf8");
  const rows = page.slice(page.indexOf("\n## Errors")).match(/^\| `.*/gm) ?? [];
  const reasons = rows.flatMap((row) => row.split("|")[2]?.match(/[A-Z_]{2,}/g) ?? []);
  assert(reasons.length > 60);
  assert.deepEqual(Object.keys(Reason), [...new Set(reasons)].sort());
  assert.deepEqual(Object.values(Reason), Object.keys(Reason));
});

test("any name of an attribute and any time are kept", async () => {
  const time = (ms: number): AttributeValue => ({
    kind: { $case: "timeValue", value: new Date(ms) },
  });
  const attributes = JSON.parse('{"__proto__": 0, "constructor": 0}');
  Object.defineProperty(attributes, "__proto__", { value: time(-1_500) });
  attributes.constructor = { kind: { $case: "intValue", value: 2n ** 62n } };
  const { user } = await client.registry.createUser({ user: { attributes } });
  assert.deepEqual(
    Object.entries(user?.attributes ?? {}).sort(),
    Object.entries(attributes).sort(),
  );
  assert.equal(Object.getPrototypeOf(user?.attributes), Object.prototype);
});

test("an import and an export are streams", async () => {
  const tenant = "imported";
  async function* lines() {
    yield { options: { tenant } };
    for (let line = 1; line <= 3_000; line++) {
      yield { line: BigInt(line), user: { displayName: `User ${line}` } };
    }
  }
  await collect(client.admin.importUsers(lines()));
  const exported = await collect(client.admin.exportUsers({ tenant }));
  assert.equal(exported.filter(({ user }) => user !== undefined).length, 3_000);
  async function* broken() {
    yield { options: { tenant } };
    throw new Error("the file is damaged");
  }
  await assert.rejects(collect(client.admin.importUsers(broken())), /the file is damaged/);
});

test("import and require have the same classes", () => {
  const require = createRequire(import.meta.url);
  assert.equal(require("polynym").PolynymError, PolynymError);
  assert.equal(require("polynym/testing").startServer, startServer);
});

test("the ten lines of the page run", async () => {
  const lines = readFileSync(new URL("examples/ten-lines.mjs", root), "utf8");
  const page = readFileSync(new URL("README.md", root), "utf8");
  assert(
    page.includes(`\`\`\`js\n${lines}\`\`\``),
    "README.md does not have examples/ten-lines.mjs",
  );
  const program = fileURLToPath(new URL("examples/ten-lines.mjs", root));
  const env = { ...process.env, POLYNYM_SERVER: server.address };
  for (let run = 0; run < 2; run++) {
    const { stdout } = await promisify(execFile)(process.execPath, [program], { env });
    const { user } = await client.resolve(email("joe@example.com"));
    assert.equal(stdout, `Joe Smith ${user.userId}\n`);
  }
});

test("a server for tests that cannot start is an error", async () => {
  await assert.rejects(
    startServer({ program: "/nowhere/polynym" }),
    /cannot start \/nowhere\/polynym: .*ENOENT/,
  );
  await assert.rejects(
    startServer({ args: ["--no-such-option"] }),
    /polynym serve ended:\n[^]*--no-such-option/,
  );
});
