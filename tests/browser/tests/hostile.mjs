// Users whose every field is an attack: nothing runs, and nothing breaks the layout.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { ATTACK, hostileUser } from "../harness/canary.mjs";
import { checkLayout, checkPage, keep } from "../harness/checks.mjs";
import { pages } from "../harness/pages.mjs";
import { heading, home, paste, sees } from "../harness/steps.mjs";
import { inBothModes } from "../harness/variants.mjs";

/** Texts for the search box. */
const PASTES = [
  ATTACK,
  "\u{202e}\u{2066}joe",
  `attributes."${ATTACK.replaceAll('"', '\\"')}" = "x"`,
  "y".repeat(4_000),
  `github/${ATTACK}`,
  "{{7*7}} ${7*7} <%= 7*7 %>",
  "\u{0}\u{1b}[31m",
];

/** The pages about a user. */
const USER_PAGES = ["history", "inbox", "link", "name", "attributes", "disable", "delete", "purge", "inbox/send", "merge", "unmerge"];

describe("hostile data", () => {
  inBothModes("runs nothing and breaks nothing on any page", async ({ page, api, tenant, scripts, faults }) => {
    const user = await hostileUser(api);
    const check = async () => {
      assert.equal(await page.evaluate(() => globalThis.canary), undefined);
      assert.equal(await page.locator('img:not(.brand img[src*="/assets/"]), script:not([nonce])').count(), 0);
      await checkLayout(page);
      assert.deepEqual(faults, []);
    };
    await page.goto(`${home(tenant)}/`);
    await paste(page, "");
    await heading(page, "All users");
    await page.getByRole("region", { name: "Users" }).getByText("onerror").first().waitFor();
    await check();
    await page.goto(`${home(tenant)}/users/${user.userId}`);
    await heading(page, "onerror");
    await check();
    if (scripts) {
      await checkPage(page, faults);
    } else {
      const response = await page.request.get(page.url());
      keep(await response.text(), page.url());
    }
    for (const path of [...pages(tenant).map(({ path }) => path), ...USER_PAGES.map((path) => `${home(tenant)}/users/${user.userId}/${path}`)]) {
      await page.goto(path);
      await page.getByRole("main").getByRole("heading").first().waitFor();
      await check();
      keep(await (await page.request.get(page.url())).text(), page.url());
    }
    await page.goto(`${home(tenant)}/users/${user.userId}`);
    const attributes = page.getByRole("region", { name: "Attributes" });
    await attributes.getByRole("button", { name: ATTACK }).first().click();
    await heading(page, "onerror");
    await check();
    await page.goBack();
    await page.getByRole("region", { name: "Identities" }).getByRole("button", { name: "onmouseover" }).click();
    await heading(page, "onmouseover");
    await check();
  });

  inBothModes("in the search box is text", async ({ page, tenant, check }) => {
    await page.goto(`${home(tenant)}/`);
    for (const text of PASTES) {
      await paste(page, text);
      await page.getByRole("main").getByRole("heading").first().waitFor();
      assert.equal(await page.evaluate(() => globalThis.canary), undefined);
      await checkLayout(page);
      await check(page);
    }
  });
});
