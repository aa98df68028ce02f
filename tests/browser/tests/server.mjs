// The server: usage, health, callers; and events as they happen.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { checkPage } from "../harness/checks.mjs";
import { heading, home, sees } from "../harness/steps.mjs";
import { eventually } from "../harness/visit.mjs";
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
