// Times are shown in the zone of the browser, or in the chosen one, and what is typed is read in it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Api } from "../harness/api.mjs";
import { checkPage } from "../harness/checks.mjs";
import { openServer } from "../harness/shared.mjs";
import { home } from "../harness/steps.mjs";
import { visit } from "../harness/visit.mjs";

const TOKYO = { settings: { timezoneId: "Asia/Tokyo" } };
const MINUTE = /^\d{4}-\d\d-\d\d \d\d:\d\d$/;

/** The milliseconds of a time as pages show it, read as UTC. */
const millis = (text) => Date.parse(`${text.slice(0, 16).replace(" ", "T")}Z`);

describe("times", () => {
  test("times are those of the browser's zone with UTC on hover, or of a chosen zone", async () => {
    const server = await openServer();
    const { userId } = await new Api(server.origin, "default").resolve("handle:joe");
    const history = `${home("default")}/users/${userId}/history`;
    await visit(server, TOKYO, async (page, { faults }) => {
      await page.goto(history);
      const time = page.locator("#content time").first();
      const text = await time.textContent();
      assert.match(text, MINUTE);
      const utc = await time.getAttribute("title");
      assert.ok(utc.includes(" UTC"), utc);
      assert.equal(millis(text) - millis(utc), 9 * 3_600_000);
      await page.getByText("From (Asia/Tokyo)").waitFor();

      // A minute later, in the zone and with an offset: nothing is as old.
      const later = new Date(millis(text) + 60_000).toISOString().slice(0, 16).replace("T", " ");
      for (const typed of [later, `${later}+09:00`]) {
        await page.getByLabel("From").fill(typed);
        await page.getByRole("button", { name: "Show", exact: true }).click();
        await page.getByText("No matching changes.").waitFor();
        assert.equal(await page.getByLabel("From").inputValue(), `${later}:00`);
      }
      await page.getByLabel("From").fill(text);
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await page.getByRole("heading", { name: "created" }).waitFor();
      await checkPage(page, faults);

      await page.getByText("anonymous", { exact: true }).first().click();
      await page.getByLabel("Zone of times").selectOption("Europe/Vienna");
      await page.locator("form", { has: page.locator("#zone") }).getByRole("button").click();
      await page.getByText("From (Europe/Vienna)").waitFor();
      const vienna = millis(await page.locator("#content time").first().textContent()) - millis(utc);
      assert.ok([1, 2].map((hours) => hours * 3_600_000).includes(vienna), `${vienna}`);
    });
  });

  test("the days of the audit are those of the zone", async () => {
    const server = await openServer();
    await visit(server, TOKYO, async (page) => {
      await page.goto(`${home("default")}/audit`);
      const first = page.locator("ol.audit time").first();
      const title = await first.getAttribute("title");
      const day = await page.locator("h2 time").first().textContent();
      assert.equal(title.slice(0, 10), day);
      assert.equal(title.slice(11, 16), await first.textContent());
    });
  });

  test("the chosen days are those of the zone", async () => {
    const server = await openServer();
    await visit(server, TOKYO, async (page) => {
      await page.goto(`${home("default")}/audit`);
      await page.getByRole("button", { name: "Yesterday" }).click();
      await page.getByText("Period: Yesterday").waitFor();
      const [from, to] = [await page.getByLabel("From").inputValue(), await page.getByRole("textbox", { name: /^To/ }).inputValue()];
      const today = new Date(Date.now() + 9 * 3_600_000).toISOString().slice(0, 10);
      assert.equal(to, `${today} 00:00:00`);
      assert.equal(Date.parse(`${to.slice(0, 10)}Z`) - Date.parse(`${from.slice(0, 10)}Z`), 86_400_000);
      await page.getByLabel("From").fill(today);
      await page.getByRole("textbox", { name: /^To/ }).fill(today);
      await new Api(server.origin, "default").create("Day Canary");
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await page.locator("ol.audit li", { hasText: "Day Canary" }).waitFor();
    });
  });

  test("changes as they happen are above those of the days, in any zone", async () => {
    const server = await openServer();
    await visit(server, TOKYO, async (page, { faults }) => {
      await page.goto(`${home("default")}/audit?live=on`);
      const before = await page.locator("ol.audit:not(#events) li").count();
      assert.ok(before > 0);
      await new Api(server.origin, "default").create("Live Canary");
      const line = page.locator("#events li", { hasText: "Live Canary" });
      await line.waitFor();
      const time = line.locator("time");
      assert.equal((await time.getAttribute("title")).slice(11, 16), await time.textContent());
      assert.equal(await page.locator("ol.audit:not(#events) li").count(), before);
      assert.deepEqual(faults, []);
    });
  });

  test("without scripts times are in UTC, and say so", async () => {
    const server = await openServer();
    await visit(server, { ...TOKYO, scripts: false }, async (page) => {
      const { userId } = await new Api(server.origin, "default").resolve("handle:joe");
      await page.goto(`${home("default")}/users/${userId}/history`);
      await page.getByText("From (UTC)").waitFor();
      assert.match(await page.locator("#content time").first().textContent(), / UTC$/);
    });
  });
});
