// Every page in both themes, on a narrow screen, and with names in all scripts.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Api } from "../harness/api.mjs";
import { checkLayout, checkPage } from "../harness/checks.mjs";
import { isFirefox } from "../harness/launch.mjs";
import { pages } from "../harness/pages.mjs";
import { openServer } from "../harness/shared.mjs";
import { heading, home, paste } from "../harness/steps.mjs";
import { visit } from "../harness/visit.mjs";
import { inBothModes } from "../harness/variants.mjs";

const PHONE = { width: 360, height: 740 };

describe("appearance", () => {
  for (const { path, title } of pages("default")) {
    test(`${path} is accessible in both themes, and valid`, async () => {
      await visit(await openServer(), {}, async (page, { faults }) => {
        await page.goto(path);
        await heading(page, title);
        await checkPage(page, faults);
      });
    });
  }

  inBothModes(
    "no page is wider than a phone",
    async ({ page, api }) => {
      for (const { path, title } of pages("default")) {
        await page.goto(path);
        await heading(page, title);
        await checkLayout(page);
      }
      await page.goto(`${home("default")}/`);
      await paste(page, "state = ACTIVE");
      await heading(page, "Results");
      await checkLayout(page);
      const user = await api.resolve("handle:joe");
      await page.goto(`${home("default")}/users/${user.userId}`);
      await heading(page, "Joe Smith");
      await checkLayout(page);
    },
    { tenant: "default", ...PHONE },
  );

  // Only Chromium can be told the theme of the system while it runs.
  test("the theme is that of the system, or the one that a person has chosen", { skip: isFirefox }, async () => {
    const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const lightness = (color) => color.match(/[\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
    await visit(await openServer(), { theme: "dark" }, async (page) => {
      await page.goto("/console/");
      const dark = await background(page);
      await page.emulateMedia({ colorScheme: "light" });
      const light = await background(page);
      assert.ok(lightness(light) > lightness(dark), `${light} and ${dark}`);
      await page.getByText("anonymous", { exact: true }).click();
      await page.getByRole("button", { name: "Dark" }).click();
      await heading(page, "Who is this?");
      assert.equal(await background(page), dark);
    });
  });

  test("names of scripts from right to left stand on their side, and leave the others alone", async () => {
    const server = await openServer();
    const { userId } = await new Api(server.origin, "default").resolve("handle:يوسف");
    await visit(server, {}, async (page, { faults }) => {
      await page.goto(`${home("default")}/users/${userId}`);
      const name = page.getByRole("heading", { name: "يوسف حداد" });
      const direction = (element) => getComputedStyle(element).direction;
      assert.equal(await name.evaluate(direction), "rtl");
      assert.equal(await page.getByText("youssef.haddad@example.org").first().evaluate(direction), "ltr");
      await checkPage(page, faults);
    });
  });
});
