// States of the console's pages: with data and without, with errors, with menus and dialogs open.
import { randomUUID } from "node:crypto";
import { pages } from "./pages.mjs";
import { home } from "./steps.mjs";

/** The tenants of the scenes, one of which has no users. */
const [TENANT, EMPTY] = ["scenes", "scenes-empty"];
const HOME = home(TENANT);
/** An operation that the scenes show, and one that they undo. */
const OPERATIONS = ["scenes-shown", "scenes-undone"];

let tables = 0;

/** A file with a user whom no other file has, and a wrong row. */
const table = () => `Name;E-Mail;Ort
Anna Müller;anna${++tables}@example.com;Köln
Nora Falsch;nora@@example.org;Köln
`;

/** Makes what the scenes show. Returns its ids. */
export async function prepare(api) {
  const created = await Promise.all(Array.from({ length: 60 }, (_, n) => api.create(`Person ${n}`, [`handle:person${n}`], { team: n % 3 ? "red" : "blue" })));
  const identities = ["handle:zoe", "email:zoe@example.com", "email:zoe@example.org", "phone:+14155550100", "social:github/77"];
  const zoe = await api.create("Zoé Lee", identities, { team: "red", long: "word ".repeat(300), list: ["a", "b"], vip: true });
  const [double, merged, off, gone, other, bare] = await Promise.all([
    api.create("Zoe Lee", ["email:zoe.lee@example.net"], { team: "blue" }),
    api.create("Zoé Merged", ["email:merged@example.net"]),
    api.create("Dan Disabled", ["handle:dan"]),
    api.create("Gil Gone", ["handle:gil"]),
    api.create("Otto Other", ["handle:otto"]),
    api.create(""),
  ]);
  await api.call("Registry.MergeUsers", { primaryUserId: zoe.userId, secondaryUserId: merged.userId });
  await api.call("Registry.DisableUser", { userId: off.userId }, { "polynym-operation-id": OPERATIONS[0], "polynym-reason": "CRM-12" });
  await api.call("Registry.DisableUser", { userId: created[0].userId }, { "polynym-operation-id": OPERATIONS[1] });
  await api.call("Registry.DeleteUser", { userId: gone.userId });
  await api.call("Registry.UnlinkIdentity", { userId: other.userId, identifier: { handle: "otto" } });
  await api.call("Registry.VerifyIdentity", { userId: zoe.userId, identifier: { email: "zoe@example.com" }, verified: true, verifiedBy: "a letter" });
  for (const subject of ["Welcome", "A second notice"]) {
    await api.call("Inbox.SendNotice", { recipients: [{ userId: zoe.userId }], requestId: randomUUID(), notice: { subject, body: "Hello.\n\nBye." } });
  }
  const bulkId = randomUUID();
  await api.call("Registry.StartBulkChange", { bulkId, requestId: randomUUID(), filter: 'display_name = "Person 1"', action: { disable: {} } });
  return { bulkId, ...Object.fromEntries(Object.entries({ zoe, double, merged, off, gone, other, bare }).map(([name, user]) => [name, user.userId])) };
}

/** Sends a form of this path, as a page with it does. */
async function send(page, path, fields) {
  await page.goto(`${HOME}/`);
  const loaded = page.waitForNavigation();
  await page.evaluate(
    ([path, fields]) => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: path });
      for (const [name, value] of fields) {
        const input = document.createElement("input");
        Object.assign(input, { type: "hidden", name, value });
        form.append(input);
      }
      document.body.append(form);
      form.submit();
    },
    [path, Object.entries({ request_id: randomUUID(), ...fields })],
  );
  await loaded;
}

const at = (path) => (page) => page.goto(path);
const sent = (path, fields) => (page) => send(page, path, fields);
const found = (q) => sent(`${HOME}/search`, { q });

/** A state, and then a click on what opens. */
const opening = (state, selector) => async (page) => {
  await state(page);
  await page.locator(selector).first().click();
};

/** A page that is loaded until it has what work on the server makes. */
const until = (state, selector) => async (page) => {
  await state(page);
  await page.locator(selector).first().waitFor();
};

async function typing(page, text, selector) {
  await page.goto(`${HOME}/`);
  await page.getByRole("searchbox").fill(text);
  await page.locator(`#suggestions ${selector}`).first().waitFor();
}

async function upload(page, name, content) {
  await page.goto(`${HOME}/import`);
  await page.locator("input[type=file]").first().setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from(content) });
  await page.locator("main form button.primary").first().click();
}

const uploaded = async (page) => {
  await upload(page, "people.csv", table());
  await page.locator("button[formaction$='/dry-run']").first().waitFor();
};

async function dryRun(page) {
  await uploaded(page);
  await page.locator("button[formaction$='/dry-run']").first().click();
  await page.locator("button[formaction$='/run']").first().waitFor();
}

async function imported(page) {
  await dryRun(page);
  await page.locator("button[formaction$='/run']").first().click();
  await page.locator("a[href*='rejects']").first().waitFor();
}

const bulkDryRun = until(sent(`${HOME}/bulk/new`, { filter: 'attributes.team = "blue"', action: "disable" }), "form[action$='/apply'] button");
const people = (made) => {
  const of = (name, path = "") => `${HOME}/users/${made[name]}${path}`;
  return {
    "a user": at(of("zoe")),
    "a user, actions open": opening(at(of("zoe")), ".actions-menu summary"),
    "a user without anything": at(of("bare")),
    "a disabled user": at(of("off")),
    "a deleted user": at(of("gone")),
    "a merged user": at(of("merged")),
    "a user who was renamed like another": sent(of("double", "/name"), { name: "Zoe Lee" }),
    "a history": at(of("zoe", "/history")),
    "a history, more open": opening(at(of("zoe", "/history")), "main details summary"),
    "a history without changes": at(of("zoe", "/history?to=2020-01-01")),
    "an inbox": at(of("zoe", "/inbox")),
    "an empty inbox": at(of("bare", "/inbox")),
    "a notice to send": at(of("zoe", "/inbox/send")),
    "a notice without a subject": sent(of("zoe", "/inbox/send"), { subject: "" }),
    "an identity to link": at(of("zoe", "/link")),
    "an identity that is none": sent(of("zoe", "/link"), { kind: "email", value: "x" }),
    "an identity that is taken": sent(of("zoe", "/link"), { kind: "handle", value: "person1" }),
    "an identity that is held": sent(of("zoe", "/link"), { kind: "handle", value: "otto" }),
    "an identity": sent(of("zoe", "/identity"), { identity: "email:zoe@example.com" }),
    "an identity to move": sent(of("zoe", "/move"), { identity: "email:zoe@example.org", to_id: made.double }),
    "a name": at(of("zoe", "/name")),
    "a name that somebody else changed": sent(of("zoe", "/name"), { name: "Zo", etag: "wrong" }),
    "an attribute to add": at(of("zoe", "/attributes")),
    "an attribute of a wrong type": sent(of("zoe", "/attributes"), { attribute: "n", type: "int", text: "x" }),
    "an attribute": sent(of("zoe", "/attribute"), { attribute: "team" }),
    "disabling": at(of("zoe", "/disable")),
    "deleting": at(of("zoe", "/delete")),
    "restoring": at(of("gone", "/undelete")),
    "purging": at(of("zoe", "/purge")),
    "purging without the name": sent(of("zoe", "/purge"), { confirmation: "x" }),
    "a merge to choose": at(of("zoe", "/merge")),
    "a merge with nobody": sent(of("zoe", "/merge"), { other: "nobody at all" }),
    "a merge with one of several": sent(of("zoe", "/merge"), { other: "person" }),
    "a merge": at(of("zoe", `/merge/${made.double}`)),
    "a merge to undo": at(of("zoe", `/unmerge/${made.merged}`)),
    "a user to create": at(`${HOME}/users/new`),
    "a user to create, more rows": sent(`${HOME}/users/new`, { name: "A", "kind.1": "email", "value.1": "a@example.com", add: "identity" }),
    "a user who cannot be created": sent(`${HOME}/users/new`, { name: "A", "kind.1": "email", "value.1": "x" }),
  };
};

const searches = {
  "the start page, account open": opening(at(`${HOME}/`), ".account summary"),
  "the start page, keys open": async (page) => {
    await page.goto(`${HOME}/bulk`);
    await page.keyboard.press("?");
    await page.locator("#keys[open]").waitFor();
  },
  "suggestions": (page) => typing(page, "person", "a"),
  "no suggestions": (page) => typing(page, "@nobody-at-all", "p"),
  "all users": found(""),
  "all users, filter open": opening(found(""), ".chips details summary"),
  "all users, values suggested": async (page) => {
    await opening(found(""), ".chips details summary")(page);
    await page.locator("#f-attribute").fill("team");
    await page.locator("#f-attribute").press("Tab");
    await page.locator("#f-values p").waitFor();
  },
  "all users, save open": opening(found(""), ".chips details >> nth=1 >> summary"),
  "the second page": opening(found(""), "a[rel=next]"),
  "a list with filters": found('attributes.team = "red" AND state = ACTIVE'),
  "an owned identifier": found("zoe@example.com"),
  "a free identifier": found("@nobody-at-all"),
  "a held identifier": found("@otto"),
  "a number in national form": found("(415) 555-0100"),
  "a name": found("zoe"),
  "a similar name": found("persn"),
  "no name": found("qqqqqq"),
  "a wrong filter": found("state = X"),
  "an empty list": found("state = MERGED AND display_name = nobody"),
  "columns": async (page) => {
    await found("")(page);
    await page.goto(`${page.url().split("#")[0]}/columns`);
  },
  "a search that is gone": at(`${HOME}/search/9999`),
  "an identifier to link": opening(found("@nobody-at-all"), "a[href*='/link?']"),
};

const lists = (made) => ({
  "duplicates": sent(`${HOME}/duplicates`, { min_score: "30" }),
  "duplicates of a wrong score": sent(`${HOME}/duplicates`, { min_score: "101" }),
  "no duplicates": sent(`${home(EMPTY)}/duplicates`, { min_score: "50" }),
  "a file with columns": uploaded,
  "a file that is no table": until((page) => upload(page, "list.xlsx", "PK\u0003\u0004\u0014"), "[role=alert]"),
  "a dry run of a file": dryRun,
  "an imported file": imported,
  "a bulk change to make": at(`${HOME}/bulk/new`),
  "a bulk change of a wrong filter": sent(`${HOME}/bulk/new`, { filter: "state = X", action: "disable" }),
  "a bulk change, dry run": bulkDryRun,
  "a bulk change": at(`${HOME}/bulk/${made.bulkId}`),
  "no bulk change": at(`${HOME}/bulk/x`),
  "audit of a reason": sent(`${HOME}/audit`, { reason: "crm" }),
  "audit, nothing": at(`${HOME}/audit?from=2020-01-01&to=2020-01-02`),
  "audit, live": opening(at(`${HOME}/audit`), "a[href*='live']"),
  "an operation": at(`${HOME}/operations/${OPERATIONS[0]}`),
  "users of an operation": at(`${HOME}/operations/${OPERATIONS[0]}/users`),
  "no operation": at(`${HOME}/operations/none`),
  "an undoing": at(`${HOME}/operations/${OPERATIONS[0]}/undo`),
  "an undone operation": sent(`${HOME}/operations/${OPERATIONS[1]}/undo`, {}),
  "events of a user": at(`${HOME}/events?user=${made.zoe}`),
});

const tenants = {
  "policies": at(`${HOME}/policies`),
  "a wrong policy": sent(`${HOME}/policies`, { undo_window: "x" }),
  "attributes": at(`${HOME}/policies/attributes`),
  "a wrong attribute": sent(`${HOME}/policies/attributes`, { name: "", type: "int" }),
  "the history of a tenant": at(`${HOME}/policies/history`),
  "a tenant to delete": at(`${HOME}/policies/delete`),
  "a tenant to delete, wrong name": sent(`${HOME}/policies/delete`, { name: "x" }),
  "no tenants": at("/console/tenants?prefix=zzz"),
  "a tenant with a wrong name": sent("/console/tenants", { name: "A B" }),
  "no page": at(`${HOME}/nothing-here`),
};

/** The states of a server without credentials: what each is, and the way to it. */
export function scenes(made) {
  const menu = [TENANT, EMPTY].flatMap((tenant) => pages(tenant)).map(({ path }) => [`${path}`, at(path)]);
  return [...menu, ...Object.entries({ ...searches, ...people(made), ...lists(made), ...tenants })];
}

/** The states of a server with credentials, for an admin who is signed in; the last ones sign out. */
export const guarded = Object.entries({
  "callers": at("/console/callers"),
  "a new token": at("/console/callers/new"),
  "a new token of a wrong name": sent("/console/callers/new", { name: "A B", role: "viewer", tenants: "*", valid: "365d" }),
  "a token to extend": at("/console/callers/extend?name=viewer"),
  "a token of a wrong time": sent("/console/callers/extend", { name: "viewer", valid: "x" }),
  "a token to revoke": at("/console/callers/revoke?name=admin"),
  "sessions": at("/console/callers/sessions"),
  "signing in": async (page) => {
    await page.context().clearCookies({ name: "polynym_session" });
    await page.goto("/console/sign-in");
  },
  "signing in by a wrong token": async (page) => {
    await page.goto("/console/sign-in");
    await page.locator("#token").fill("pn_wrong");
    await page.locator("main form button").first().click();
    await page.getByRole("alert").waitFor();
  },
});

export { TENANT };
