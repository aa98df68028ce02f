// What each role sees, and what the server refuses to it whatever it sends.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Api } from "../harness/api.mjs";
import { FORMS_BY_ROLE, PAGES_BY_ROLE, completing, isOfNothing, pages } from "../harness/pages.mjs";
import { ROLES } from "../harness/server.mjs";
import { guardedServer } from "../harness/shared.mjs";
import { heading } from "../harness/steps.mjs";
import { eventually } from "../harness/visit.mjs";
import { asRole } from "../harness/variants.mjs";
import { Visitor, mutation, signedIn, signedInAs } from "../harness/visitor.mjs";

const rank = (role) => ROLES.indexOf(role);

/** All that needs more than a role. */
const beyond = (role, byRole) => Object.entries(byRole).flatMap(([least, paths]) => (rank(least) > rank(role) ? paths : []));

async function twoUsers(tenant) {
  const server = await guardedServer();
  const api = new Api(server.origin, tenant, server.credentials.tokens.admin);
  return { api, user: await api.create("Ann", [`handle:${tenant}`]), other: await api.create("Bob") };
}

/** A form that does something whatever the path: the fields of all of them. */
const fields = (tenant, user, other) =>
  mutation(user.etag, {
    kind: "email",
    value: "evil@example.com",
    identity: `handle:${tenant}`,
    name: "Evil",
    attribute: "evil",
    type: "string",
    text: "evil",
    user: other.userId,
    to_id: other.userId,
    apply: "yes",
    other: other.userId,
    etag_other: other.etag,
    keep: "own",
    subject: "Evil",
    body: "evil",
    confirmation: "Ann",
    min_score: "50",
    caller: "admin",
    filter: "",
    action: "delete",
    list: "own",
    handles: "evil",
    verified_wins: "on",
  });

/** The short id of a search that nobody matches. */
async function searched(visitor, tenant) {
  const { status, headers } = await visitor.post(`/console/t/${tenant}/search`, { q: "display_name: evil" });
  assert.equal(status, 303);
  return headers.location.split("/").at(-1);
}

describe("roles", () => {
  for (const role of ROLES) {
    asRole(role, `a ${role} sees links to the pages that it may open, and opens no other`, async ({ page }) => {
      const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
      const shown = await links.evaluateAll((all) => all.map((link) => new URL(link.href).pathname));
      for (const { path, title, role: least } of pages("default")) {
        const isAllowed = rank(role) >= rank(least);
        assert.equal(shown.includes(path), isAllowed, `${role} and ${path}`);
        const response = await page.goto(path);
        assert.equal(response.status(), isAllowed ? 200 : 403, `${role} and ${path}`);
        await heading(page, isAllowed ? title : "Not allowed");
      }
    });

    if (role !== "admin") {
      test(`hand-made requests of a ${role} are refused, and change nothing`, async () => {
        const tenant = `forged-${role}`;
        const { api, user, other } = await twoUsers(tenant);
        const { visitor } = await signedInAs(role);
        const completed = completing(tenant, user, other, await searched(visitor, tenant));
        for (const path of beyond(role, PAGES_BY_ROLE)) {
          assert.equal((await visitor.get(completed(path))).status, 403, `GET ${path}`);
        }
        for (const path of beyond(role, FORMS_BY_ROLE)) {
          const { status, text } = await visitor.post(completed(path), fields(tenant, user, other));
          assert.equal(status, 403, `POST ${path}: ${text}`);
        }
        assert.deepEqual(await api.get(user.userId), user);
        assert.deepEqual(await api.get(other.userId), other);
        assert.equal((await api.search("")).length, 2);
      });
    }
  }

  test("the same requests of an admin reach their pages", async () => {
    const tenant = "forged-admin";
    const { user, other } = await twoUsers(tenant);
    const { visitor } = await signedInAs("admin");
    const completed = completing(tenant, user, other, await searched(visitor, tenant));
    for (const path of beyond("resolver", PAGES_BY_ROLE)) {
      assert.equal((await visitor.get(completed(path))).status, 200, `GET ${path}`);
    }
    for (const path of beyond("resolver", FORMS_BY_ROLE)) {
      // The etag of nobody: nothing is changed, and a page says why.
      const form = { ...fields(tenant, user, other), etag: "wrong", confirmation: "" };
      const { status } = await visitor.post(completed(path), form);
      if (isOfNothing(path)) {
        assert.equal(status, 404, `POST ${path}`);
      } else {
        assert.ok(![403, 404, 405].includes(status) && status < 500, `POST ${path}: ${status}`);
      }
    }
  });

  test("a caller of one tenant can neither open nor change another", async () => {
    const { api, user, other } = await twoUsers("theirs");
    const server = await guardedServer();
    await new Api(server.origin, "ours", server.credentials.tokens.admin).create("Own");
    const token = await waitForToken(server, await server.credentials.add("ours", "admin", "ours"));
    const visitor = await signedIn(server, token);
    const completed = completing("theirs", user, other, "1");
    assert.equal((await visitor.get("/console/t/ours/")).status, 200);
    const forms = Object.values(FORMS_BY_ROLE).flat().filter((path) => !["audit", "duplicates", "import"].includes(path));
    for (const path of forms) {
      const sent = await visitor.post(completed(path), fields("theirs", user, other));
      const { status } = sent.status === 303 ? await visitor.get(sent.headers.location) : sent;
      assert.ok([403, 404].includes(status), `POST ${path}: ${status}`);
    }
    const page = await visitor.get(completed("users/USER"));
    assert.ok(page.status === 403 && !page.text.includes("Ann"), `${page.status}`);
    assert.deepEqual(await api.get(user.userId), user);
  });
});

/** A token, once the server has read the file that has it. */
async function waitForToken(server, token) {
  await eventually(async () => {
    const { status } = await new Visitor(server.origin).post("/console/sign-in", { token });
    assert.equal(status, 303);
  });
  return token;
}
