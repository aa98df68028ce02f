// What can be done with a user: name, attributes, states, inbox, purge. Two tabs, and double clicks.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openServer } from "../harness/shared.mjs";
import { done, heading, home, open, sees } from "../harness/steps.mjs";
import { visit } from "../harness/visit.mjs";
import { Api } from "../harness/api.mjs";
import { inBothModes } from "../harness/variants.mjs";

const state = async (api, userId) => (await api.get(userId)).state;

describe("users", () => {
  inBothModes("get a name and attributes, and lose them", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann", [], { team: "red" });
    await open(page, tenant, userId);
    await page.getByRole("link", { name: "Change name" }).click();
    await page.getByLabel("Display name").fill("Ann Lee");
    await page.getByRole("button", { name: "Change name" }).click();
    await done(page);
    await heading(page, "Ann Lee");

    await page.getByRole("link", { name: "Add an attribute" }).click();
    await page.getByLabel("Name").fill("languages");
    await page.getByLabel("Type").selectOption({ label: "List, one text per line" });
    await page.getByLabel("Value").fill("de\nen");
    await check(page);
    await page.getByRole("button", { name: "Add attribute" }).click();
    await done(page);
    assert.deepEqual((await api.get(userId)).attributes.languages.listValue.values, ["de", "en"]);

    await page.getByRole("button", { name: "Change team" }).click();
    await page.getByLabel("Value").fill("blue");
    await page.getByRole("button", { name: "Save attribute" }).click();
    await done(page);
    assert.equal((await api.get(userId)).attributes.team.stringValue, "blue");

    await page.getByRole("button", { name: "Change languages" }).click();
    await page.getByRole("button", { name: "Remove attribute" }).click();
    await done(page);
    assert.deepEqual(Object.keys((await api.get(userId)).attributes), ["team"]);
  });

  inBothModes("are disabled, enabled, deleted and restored", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann", ["handle:ann"]);
    await open(page, tenant, userId);
    for (const [link, button, expected] of [
      ["Disable", "Disable user", "STATE_DISABLED"],
      ["Enable", "Enable user", "STATE_ACTIVE"],
      ["Delete", "Delete user", "STATE_DELETED"],
      ["Restore", "Restore user", "STATE_ACTIVE"],
    ]) {
      if (link !== "Restore") {
        await page.getByText("More", { exact: true }).click();
      }
      await page.getByRole("main").getByRole("link", { name: link, exact: true }).click();
      await page.getByLabel("Reason").fill(`to ${link}`);
      if (link === "Delete") {
        await sees(page, "You can restore the user until");
        await check(page);
      }
      await page.getByRole("button", { name: button }).click();
      await done(page);
      assert.equal(await state(api, userId), expected);
      assert.equal((await api.history(userId))[0].reason, `to ${link}`);
    }
  });

  inBothModes("are purged only by typing their name", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann Lee", ["handle:ann"]);
    await open(page, tenant, userId);
    await page.getByText("More", { exact: true }).click();
    await check(page);
    await page.getByRole("link", { name: "Purge" }).click();
    await page.getByLabel("Type the name or the id of the user").fill("ann");
    await page.getByRole("button", { name: "Purge user" }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(await state(api, userId), "STATE_ACTIVE");
    await check(page);
    await page.getByLabel("Type the name or the id of the user").fill("Ann Lee");
    await page.getByRole("button", { name: "Purge user" }).click();
    await heading(page, "The user was purged");
    await assert.rejects(api.get(userId), { code: "not_found" });
  });

  inBothModes("get notices, which are read and deleted", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann");
    await open(page, tenant, userId);
    await page.getByRole("link", { name: "Inbox" }).click();
    await page.getByRole("link", { name: "Send a notice" }).click();
    await page.getByLabel("Subject").fill("Your account");
    await page.getByLabel("Text").fill("Please call us.");
    await page.getByRole("button", { name: "Send notice" }).click();
    const notice = page.getByRole("article", { name: "Your account" });
    await notice.getByText("Please call us.").waitFor();
    await check(page);
    await notice.getByRole("button", { name: "Mark as read" }).click();
    await sees(page, "0 unread");
    assert.equal((await api.call("Inbox.ListNotices", { userId })).notices.length, 1);
    await notice.getByRole("button", { name: "Delete notice" }).click();
    await sees(page, "No notices.");
    assert.equal((await api.call("Inbox.ListNotices", { userId })).notices, undefined);
  });

  inBothModes("a second tab cannot overwrite what it has not seen", async ({ page, api, tenant, context, check }) => {
    const { userId } = await api.create("Ann", [], { team: "red" });
    const other = await context.newPage();
    await page.goto(`${home(tenant)}/users/${userId}/name`);
    await other.goto(`${home(tenant)}/users/${userId}/name`);
    await other.getByLabel("Display name").fill("Ann Berg");
    await other.getByLabel("Reason").fill("she married");
    await other.getByRole("button", { name: "Change name" }).click();
    await done(other);

    await page.getByLabel("Display name").fill("Anne");
    await page.getByRole("button", { name: "Change name" }).click();
    const alert = page.getByRole("alert");
    await alert.getByText("You in another tab, or somebody else").waitFor();
    await alert.getByText("Ann Berg").first().waitFor();
    await alert.getByText("she married").waitFor();
    assert.equal((await api.get(userId)).displayName, "Ann Berg");
    assert.equal(await page.getByLabel("Display name").inputValue(), "Anne");
    await check(page);
    await page.getByRole("button", { name: "Apply again" }).click();
    await done(page);
    assert.equal((await api.get(userId)).displayName, "Anne");
  });

  inBothModes("going back and sending a form again changes nothing twice", async ({ page, api, tenant }) => {
    const { userId } = await api.create("Ann");
    await page.goto(`${home(tenant)}/users/${userId}/link`);
    await page.getByLabel("Identifier", { exact: true }).fill("@ann");
    await page.getByRole("button", { name: "Link identity" }).click();
    await done(page);
    const before = await api.history(userId);
    await page.reload();
    assert.equal((await api.history(userId)).length, before.length, "a reload has sent the form again");
  });

  test("a double click does nothing twice", async () => {
    const server = await openServer();
    const tenant = "double-click";
    const api = new Api(server.origin, tenant);
    await visit(server, {}, async (page) => {
      const { userId } = await api.create("Ann");
      await page.goto(`${home(tenant)}/users/${userId}/link`);
      await page.getByLabel("Identifier", { exact: true }).fill("@ann");
      await page.getByRole("button", { name: "Link identity" }).dblclick();
      await done(page);
      assert.deepEqual((await api.history(userId)).map(({ method }) => method), ["LinkIdentity", "CreateUser"]);
      await page.getByRole("link", { name: "Inbox" }).click();
      await page.getByRole("link", { name: "Send a notice" }).click();
      await page.getByLabel("Subject").fill("Once");
      await page.getByRole("button", { name: "Send notice" }).dblclick();
      await page.getByRole("article", { name: "Once" }).first().waitFor();
      assert.equal((await api.call("Inbox.ListNotices", { userId })).notices.length, 1);
    });
  });
});
