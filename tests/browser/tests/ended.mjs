// Sessions that end while a page is open: whatever the page asks for then, by itself or by a form, leads to signing in on
// a whole page, and back.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Api } from "../harness/api.mjs";
import { PAGES_BY_ROLE, completing, pages } from "../harness/pages.mjs";
import { guardedServer } from "../harness/shared.mjs";
import { heading, home, paste, signIn } from "../harness/steps.mjs";
import { visit } from "../harness/visit.mjs";
import { Visitor } from "../harness/visitor.mjs";

let tenants = 0;

/** The parts that a page asks for again and again, and those that follow events. */
const [POLLING, FOLLOWING] = ["main [data-hx-get]", "main [data-hx-sse\\:connect]"];

/** Ends the session on the server, as time does. The browser keeps its cookie. */
async function end(context, server) {
  const visitor = new Visitor(server.origin);
  for (const { name, value } of await context.cookies()) {
    visitor.cookies.set(name, value);
  }
  assert.equal((await visitor.post("/console/sign-out", {})).status, 303);
}

async function signInAgain(page, server) {
  await page.getByLabel("Token").waitFor();
  assert.equal(await page.getByRole("navigation", { name: "Pages" }).count(), 0, "a part of the page has the form");
  await page.getByLabel("Token").fill(server.credentials.tokens.admin);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** The paths of all pages, of a user and of a search that is open at the end. */
async function everyPage(page, server) {
  const tenant = `ended-${++tenants}`;
  const api = new Api(server.origin, tenant, server.credentials.tokens.admin);
  const [user, other] = [await api.create("Ann", ["handle:ended-ann"], { team: "red" }), await api.create("Bob")];
  await page.goto(`${home(tenant)}/`);
  await paste(page, "state = ACTIVE");
  await heading(page, "Results");
  const search = new URL(page.url()).pathname.split("/").at(-1);
  const completed = completing(tenant, user, other, search);
  const more = ["users/USER", "search/SEARCH", "audit?live=on", "users/USER/merge/OTHER", "operations/none"];
  const byRole = Object.values(PAGES_BY_ROLE).flat().filter((path) => !path.includes("export"));
  const all = [...pages(tenant).map(({ path }) => path), ...[...byRole, ...more].map(completed)];
  return [...new Set(all)];
}

describe("ended sessions", () => {
  test("panels lead to signing in and back (with scripts)", async () => {
    const server = await guardedServer();
    await visit(server, {}, async (page, { context }) => {
      await signIn(page, server.credentials.tokens.admin);
      const paths = await everyPage(page, server);
      const seen = { polling: 0, following: 0 };
      for (const path of paths) {
        await page.goto(path);
        const [polls, follows] = [await page.locator(POLLING).count(), await page.locator(FOLLOWING).count()];
        if (polls + follows === 0) {
          continue;
        }
        const address = page.url();
        await end(context, server);
        if (follows > 0) {
          await page.getByRole("alert").getByRole("link", { name: "Sign in" }).click();
          seen.following += 1;
        } else {
          seen.polling += 1;
        }
        await signInAgain(page, server);
        assert.equal(page.url(), address);
      }
      assert.ok(seen.polling >= 1 && seen.following >= 2, JSON.stringify(seen));
    });
  });

  test("forms of every page are kept (with scripts)", async () => {
    const server = await guardedServer();
    await visit(server, {}, async (page, { context }) => {
      await signIn(page, server.credentials.tokens.admin);
      const paths = await everyPage(page, server);
      const forms = "main form[method=post]";
      let count = 0;
      for (const path of paths) {
        await page.goto(path);
        const form = page.locator(forms).first();
        if ((await page.locator(forms).count()) === 0) {
          continue;
        }
        const isFile = (await form.getAttribute("enctype")) !== null;
        await end(context, server);
        await form.evaluate((form) => {
          form.noValidate = true;
          form.requestSubmit(form.querySelector("button"));
        });
        await signInAgain(page, server);
        if (!isFile) {
          const kept = page.getByRole("button", { name: "Send the form" });
          await kept.waitFor().catch(() => assert.fail(`${path} leads to ${page.url()}`));
        }
        count += 1;
      }
      assert.ok(count > 25, `${count} forms`);
    });
  });

  test("what is typed stays until it is sent (with scripts)", async () => {
    const server = await guardedServer();
    await visit(server, {}, async (page, { context }) => {
      await signIn(page, server.credentials.tokens.admin);
      await everyPage(page, server);
      await end(context, server);
      await page.locator(".chips details summary").first().click();
      const refused = page.waitForResponse((response) => response.status() === 401);
      await page.getByRole("combobox", { name: "Attribute" }).pressSequentially("team");
      await page.getByRole("combobox", { name: "Attribute" }).press("Tab");
      await refused;
      await page.getByLabel("Value", { exact: true }).fill("red");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await signInAgain(page, server);
      await page.getByRole("button", { name: "Send the form" }).waitFor();
    });
  });
});
