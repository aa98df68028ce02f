// The server: usage, health, callers; and events as they happen.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { checkAccessibility, checkLayout, checkPage } from "../harness/checks.mjs";
import { isFirefox } from "../harness/launch.mjs";
import { heading, home, sees, signIn } from "../harness/steps.mjs";
import { eventually, visit } from "../harness/visit.mjs";
import { asRole, inBothModes } from "../harness/variants.mjs";

describe("the server", () => {
  inBothModes("usage is plotted, with its table", async ({ page, api, tenant, check }) => {
    await api.create("Ann", ["handle:ann"]);
    await api.resolve("handle:ann");
    // Counters are written every ten seconds.
    await eventually(async () => {
      await page.goto(`${home(tenant)}/usage`);
      assert.ok(await page.getByRole("region", { name: "Totals" }).isVisible());
    });
    await page.getByRole("region", { name: "Totals" }).getByRole("row", { name: /CreateUser/ }).waitFor();
    await check(page);
    await page.getByLabel("Show", { exact: true }).selectOption({ index: 1 });
    await page.getByRole("button", { name: "Show" }).click();
    await heading(page, `Usage of ${tenant}`);
  });

  inBothModes("health says that the store answers", async ({ page, check }) => {
    await page.goto("/console/health");
    await sees(page, "The store answers");
    await check(page);
    await page.getByRole("link", { name: "Refresh now" }).click();
    await sees(page, "The store answers");
  });

  asRole("admin", "callers are listed with their roles", async ({ page, faults }) => {
    await page.goto("/console/callers");
    const callers = page.getByRole("region", { name: "Callers" });
    for (const role of ["resolver", "viewer", "registrar", "admin"]) {
      await callers.getByRole("row", { name: new RegExp(`^${role} ${role} `) }).waitFor();
    }
    await checkPage(page, faults);
  });

  for (const scripts of [true, false]) {
    const name = scripts ? "made" : "made-without-scripts";
    asRole(
      "admin",
      `a token is made, opens a session, and is revoked (${scripts ? "with" : "without"} scripts)`,
      async ({ page, faults, server }) => {
        const check = async () => scripts && checkPage(page, faults);
        await page.goto("/console/callers");
        await page.getByRole("link", { name: "New token", exact: true }).click();
        await heading(page, "New token");
        await check();
        await page.getByLabel("Name of the caller").fill(name);
        await page.getByLabel("Role").selectOption("viewer");
        await page.getByLabel("Tenants").fill("*");
        await page.getByRole("button", { name: "Create token" }).click();
        await heading(page, `Token of ${name}`);
        const token = await page.getByLabel("Token", { exact: true }).inputValue();
        assert.match(token, /^pn_[a-z0-9]{10}_[\w-]{43}$/);
        assert.equal(new URL(page.url()).pathname, "/console/callers/new");
        if (scripts) {
          await checkAccessibility(page);
          await checkLayout(page);
        }
        // The browser sends the form again. Nothing is shown or made then. Firefox asks a person first.
        if (!isFirefox) {
          await page.reload();
          await sees(page, "This form was sent before");
          assert.ok(!(await page.content()).includes(token));
        }

        await visit(server, { scripts }, async (other) => {
          await signIn(other, token);
          await page.goto("/console/callers/sessions");
          await page.getByRole("row", { name: new RegExp(`^${name} viewer `) }).waitFor();
          await check();
          await page.goto("/console/callers");
          const row = page.getByRole("row", { name: new RegExp(`^${name} viewer `) });
          await row.getByRole("link", { name: /^Extend/ }).click();
          await heading(page, `Extend credentials of ${name}`);
          await check();
          await page.getByLabel("Valid from now for").selectOption("never");
          await page.getByRole("button", { name: "Extend" }).click();
          await sees(page, "The expiry is changed.");
          await row.getByRole("link", { name: /^Revoke token/ }).click();
          await heading(page, `Revoke credentials of ${name}`);
          await check();
          await page.getByRole("button", { name: "Revoke" }).click();
          await sees(page, "The credentials are revoked");
          assert.equal(await row.count(), 0);
          await other.goto("/console/");
          await heading(other, "Sign in");
        });
      },
      { scripts },
    );
  }

  inBothModes("events appear as they happen", async ({ page, api, tenant, check, scripts }) => {
    await api.create("Zoë");
    const stream = scripts && page.waitForResponse((response) => response.url().includes("/events/stream"));
    await page.goto(`${home(tenant)}/events`);
    await heading(page, `Events of ${tenant}`);
    if (scripts) {
      assert.equal((await stream).status(), 200);
    }
    const { userId } = await api.create("Ann");
    const event = page.getByRole("listitem").filter({ hasText: userId });
    if (!scripts) {
      await page.getByRole("link", { name: /Refresh|More events/ }).click();
    }
    await event.first().waitFor();
    await check(page);
    await event.first().getByRole("link", { name: "Ann", exact: true }).click();
    await heading(page, "Ann");
  });
});
