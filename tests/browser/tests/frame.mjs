// The frame of pages: what was done, the menu of a narrow screen, errors that have the focus, stops of the Tab key.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { done, heading, home, open, sees } from "../harness/steps.mjs";
import { eventually } from "../harness/visit.mjs";
import { inBothModes } from "../harness/variants.mjs";

const PHONE = { width: 390, height: 844 };

async function rename(page, tenant, userId, name) {
  await page.goto(`${home(tenant)}/users/${userId}/name`);
  await page.getByLabel("Display name").fill(name);
  await page.getByRole("button", { name: "Change name" }).click();
  await done(page);
}

describe("the frame", () => {
  inBothModes("what was done is said in a corner, moves nothing, and can be closed", async ({ page, api, tenant, check, scripts }) => {
    const { userId } = await api.create("Ann Lee", ["handle:ann"]);
    await open(page, tenant, userId);
    const top = async () => (await page.getByRole("heading", { level: 1 }).boundingBox()).y;
    const before = await top();
    await rename(page, tenant, userId, "Ann Lea");
    assert.equal(await top(), before);
    const toast = page.getByRole("dialog", { name: "Done" });
    await toast.getByRole("status").getByText("The display name was changed.").waitFor();
    await check(page);
    if (scripts) {
      await page.keyboard.press("Escape");
    } else {
      await toast.getByRole("button", { name: "Close" }).click();
    }
    await toast.waitFor({ state: "hidden" });
    await rename(page, tenant, userId, "Ann Loe");
    await toast.getByRole("button", { name: "Undo" }).click();
    await heading(page, "Ann Lea");
  });

  inBothModes(
    "on a phone, the menu is a button, and all actions are on the page",
    async ({ page, api, tenant, check }) => {
      const { userId } = await api.create("Ann Lee", ["handle:ann"], { team: "search" });
      await page.goto(`${home(tenant)}/`);
      const menu = page.getByRole("navigation", { name: "Pages" });
      assert.equal(await menu.isVisible(), false);
      await page.getByRole("button", { name: "Menu" }).click();
      await menu.waitFor();
      await check(page);
      await menu.getByRole("link", { name: "Audit" }).click();
      await heading(page, "Audit");
      assert.equal(await menu.isVisible(), false);
      await rename(page, tenant, userId, "Ann Lea");
      await check(page);
      for (const button of await page.getByRole("button", { name: "Change" }).all()) {
        const { x, width } = await button.boundingBox();
        assert.ok(x >= 0 && x + width <= PHONE.width, `${x} to ${x + width}`);
      }
    },
    PHONE,
  );

  inBothModes("an error has the focus, and its field names it", async ({ page, api, tenant, check, scripts }) => {
    const { userId } = await api.create("Ann Lee", ["handle:ann"]);
    await page.goto(`${home(tenant)}/users/${userId}/purge`);
    await page.getByLabel("Type the name or the id of the user").fill("Bob");
    await page.getByRole("button", { name: "Purge user" }).click();
    await page.getByRole("alert").waitFor();
    const field = page.getByLabel("Type the name or the id of the user");
    assert.equal(await field.getAttribute("aria-errormessage"), await page.getByRole("alert").getAttribute("id"));
    if (scripts) {
      await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.id), "problem"));
    }
    await check(page);
  });

  inBothModes("regions that do not scroll are no stops", async ({ page, api, tenant, check, scripts }) => {
    const { userId } = await api.create("Ann Lee", ["handle:ann"]);
    await open(page, tenant, userId);
    const stops = () => page.locator(".scroll[tabindex]").count();
    await eventually(async () => assert.equal((await stops()) === 0, scripts));
    await check(page);
  });

  inBothModes("the start page has the people last looked at", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann Lee", ["handle:ann"]);
    await open(page, tenant, userId);
    await page.goto(`${home(tenant)}/`);
    await check(page);
    await page.getByRole("region", { name: "Last looked at" }).getByRole("link", { name: "Ann Lee" }).click();
    await sees(page, userId);
  });
});
