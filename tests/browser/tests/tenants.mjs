// Tenants: policies, definitions of attributes, history, deletion.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { Api } from "../harness/api.mjs";
import { heading, home, sees } from "../harness/steps.mjs";
import { inBothModes } from "../harness/variants.mjs";

const policies = async (api) => (await api.call("Admin.GetTenant")).tenant.policies;

describe("tenants", () => {
  inBothModes("policies are reviewed before they are saved", async ({ page, api, tenant, check }) => {
    await api.create("Ann");
    await page.goto(`${home(tenant)}/policies`);
    await heading(page, `Policies of ${tenant}`);
    await check(page);
    await page.getByRole("textbox", { name: "Restore window" }).fill("12");
    await page.getByRole("checkbox", { name: "Verified wins" }).check();
    await page.getByRole("button", { name: "Review changes" }).click();
    await page.getByRole("row", { name: "Restore window 30 days 12 days" }).waitFor();
    await page.getByRole("row", { name: "Verified wins off on" }).waitFor();
    assert.equal((await policies(api)).restoreWindow, "2592000s", "the review has saved");
    await check(page);
    await page.getByRole("button", { name: "Save policies" }).click();
    await page.getByRole("status").waitFor();
    const saved = await policies(api);
    assert.deepEqual([saved.restoreWindow, saved.verifiedWins], ["1036800s", true]);
    await page.getByRole("link", { name: "History", exact: true }).click();
    await page.getByRole("row", { name: "Restore window 30 days 12 days" }).waitFor();
  });

  inBothModes("a number that is none says so, and keeps the rest", async ({ page, api, tenant, check }) => {
    await api.create("Ann");
    await page.goto(`${home(tenant)}/policies`);
    await page.getByRole("textbox", { name: "Undo window" }).fill("soon");
    await page.getByRole("textbox", { name: "Inbox limit" }).fill("77");
    await page.getByRole("button", { name: "Review changes" }).click();
    await sees(page, "Write a whole number");
    assert.equal(await page.getByRole("textbox", { name: "Undo window" }).inputValue(), "soon");
    assert.equal(await page.getByRole("textbox", { name: "Inbox limit" }).inputValue(), "77");
    await check(page);
  });

  inBothModes("a second tab cannot overwrite policies that it has not seen", async ({ page, api, tenant }) => {
    await api.create("Ann");
    await page.goto(`${home(tenant)}/policies`);
    await page.getByRole("textbox", { name: "Undo window" }).fill("3");
    await api.call("Admin.UpdateTenant", { policies: { verifiedWins: true }, updateMask: "verifiedWins" });
    await page.getByRole("button", { name: "Review changes" }).click();
    const save = page.getByRole("button", { name: "Save policies" });
    const again = page.getByRole("button", { name: "Apply again" });
    await save.or(again).waitFor();
    if (await save.isVisible()) {
      await save.click();
    }
    await page.getByRole("alert").getByText("This tenant was changed in another tab").waitFor();
    assert.equal((await policies(api)).undoWindow, "604800s");
    await again.click();
    await save.click();
    await page.getByRole("status").waitFor();
    const saved = await policies(api);
    assert.deepEqual([saved.undoWindow, saved.verifiedWins], ["259200s", true]);
  });

  inBothModes("attributes get a type, and lose it", async ({ page, api, tenant, check }) => {
    await api.create("Ann", [], { born: "1990-01-01" });
    await page.goto(`${home(tenant)}/policies/attributes`);
    await page.getByRole("link", { name: "Define born" }).click();
    await page.getByLabel("Type of new values").selectOption({ index: 1 });
    await page.getByRole("checkbox", { name: "Evidence of duplicates" }).check();
    await page.getByRole("button", { name: "Save definition" }).click();
    const row = page.getByRole("region", { name: "Definitions" }).getByRole("row", { name: "born" });
    await row.getByText("evidence").waitFor();
    const [definition] = (await policies(api)).attributeDefinitions;
    assert.deepEqual([definition.name, definition.evidence], ["born", true]);
    await check(page);
    await row.getByRole("button", { name: "Remove" }).click();
    await sees(page, "No definitions");
    assert.equal((await policies(api)).attributeDefinitions, undefined);
  });

  inBothModes("a tenant is created, found, and deleted by typing its name", async ({ page, tenant, server, check }) => {
    const name = `${tenant}-new`;
    const api = new Api(server.origin, name);
    await page.goto("/console/tenants");
    await page.getByRole("textbox", { name: "Name", exact: true }).fill(name);
    await page.getByRole("button", { name: "Create tenant" }).click();
    await heading(page, name);
    assert.equal((await api.call("Admin.GetTenant")).tenant.tenant, name);
    await api.create("Ann", ["handle:ann"]);

    await page.goto("/console/tenants");
    await page.getByLabel("Name begins with").fill(name);
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("region", { name: "Tenants" }).getByRole("link", { name, exact: true }).waitFor();
    assert.equal(await page.getByRole("region", { name: "Tenants" }).getByRole("rowheader").count(), 1);

    await page.goto(`${home(name)}/policies/delete`);
    await page.getByRole("checkbox", { name: "Purge all users" }).check();
    await page.getByLabel("Type the name of the tenant").fill(`${name}x`);
    await page.getByRole("button", { name: "Delete tenant" }).click();
    await page.getByRole("alert").waitFor();
    await check(page);
    await page.getByLabel("Type the name of the tenant").fill(name);
    await page.getByRole("button", { name: "Delete tenant" }).click();
    await heading(page, "Tenants");
    await page.goto(`${home(name)}/policies/delete`);
    await sees(page, "Deletion began");
    assert.ok((await api.call("Admin.GetTenant")).tenant.deleteTime);
  });
});
