// What was: histories of users, callers and operations, former owners; lists as files.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { download, heading, home, open, paste, sees, settled } from "../harness/steps.mjs";
import { inBothModes } from "../harness/variants.mjs";

describe("histories", () => {
  inBothModes("a user's history shows changes, and what else their caller did", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann", ["handle:ann"], { team: "red" });
    await api.create("Bob");
    const reason = { "polynym-reason": encodeURIComponent("she married – at last") };
    await api.call("Registry.UpdateUser", { user: { userId, displayName: "Ann Berg" }, updateMask: "displayName" }, reason);
    await open(page, tenant, userId);
    await page.getByRole("link", { name: "History" }).click();
    await heading(page, "History of Ann Berg");
    await page.getByRole("row", { name: /Ann Ann Berg$/ }).waitFor();
    await sees(page, "Reason: she married – at last");
    await check(page);
    await page.getByText("More", { exact: true }).first().click();
    await page.getByRole("button", { name: "Everything this caller did in that hour" }).first().click();
    await heading(page, "Audit");
    await page.getByRole("link", { name: "Bob", exact: true }).waitFor();
    await check(page);
  });

  inBothModes("the audit is narrowed by clicks, and saved as a file", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann", [], { team: "red" });
    await api.create("Bob");
    await api.call("Registry.DisableUser", { userId }, { "polynym-reason": "CRM-12" });
    await page.goto(`${home(tenant)}/audit`);
    const lines = page.locator("[data-event]");
    assert.equal(await lines.count(), 3);
    await page.getByLabel("Reason has").fill("crm");
    await page.getByRole("button", { name: "Today" }).click();
    const chips = page.getByRole("group", { name: "Filters" }).getByRole("link");
    await chips.nth(1).waitFor();
    assert.equal(await lines.count(), 1);
    await check(page);
    const rows = (await download(page, page.getByRole("link", { name: "Export as CSV" }))).trim().split(/\r?\n/);
    assert.equal(rows.length, 2);
    assert.match(rows[1], /,disabled,.*,Ann,.*CRM-12/);
    await chips.first().click();
    await chips.first().getByText("Today").waitFor();
    assert.equal(await lines.count(), 3);
    await page.getByRole("button", { name: "Yesterday" }).click();
    await sees(page, "No matching changes.");
    await page.getByLabel("From").fill(`${new Date(Date.now() + 3_600_000).toISOString().slice(0, 16)} +02:00`);
    await page.getByLabel("To").fill("");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await lines.nth(2).waitFor();
  });

  inBothModes("the audit goes on live, once for each change, until it is paused or hidden", async ({ page, api, tenant, check, scripts }) => {
    const { userId } = await api.create("Ann");
    await page.goto(`${home(tenant)}/audit`);
    const stream = scripts && page.waitForResponse((response) => response.url().includes("/audit/stream"));
    await page.getByRole("link", { name: "Live", exact: true }).click();
    await stream;
    await api.call("Registry.UpdateUser", { user: { userId, displayName: "Ann Berg" }, updateMask: "displayName" });
    const line = page.locator("[data-event]").filter({ hasText: "Ann Berg" }).filter({ hasText: "changed" });
    if (scripts) {
      await page.locator("#events").getByRole("link", { name: "Ann Berg" }).waitFor();
    } else {
      await page.getByRole("link", { name: "Refresh" }).click();
      await line.waitFor();
    }
    assert.equal(await line.count(), 1);
    await check(page);
    await page.getByRole("link", { name: "Pause" }).click();
    await page.getByRole("link", { name: "Live", exact: true }).waitFor();
    assert.equal(await page.locator("#events").count(), 0);
    assert.equal(await line.count(), 1);
  });

  inBothModes("an operation is shown, and undone after a preview", async ({ page, api, tenant, scripts, check }) => {
    const { userId } = await api.create("Ann", [], { team: "red" });
    const operation = randomUUID();
    const header = { "polynym-operation-id": operation };
    await api.call("Registry.DisableUser", { userId }, header);
    await page.goto(`${home(tenant)}/operations/${operation}`);
    await page.getByRole("link", { name: "Ann", exact: true }).waitFor();
    await check(page);
    await page.getByRole("link", { name: "Show what undoing it would do" }).click();
    await sees(page, "Users read: 1. Would be reverted: 1.");
    assert.equal((await api.get(userId)).state, "STATE_DISABLED", "the preview has undone it");
    await check(page);
    await page.getByRole("button", { name: "Undo the operation" }).click();
    await settled(page, scripts, page.getByRole("status").filter({ hasText: /^completed$/ }));
    await sees(page, "undo the operation");
    assert.equal((await api.get(userId)).state, "STATE_ACTIVE");
    await check(page);
  });

  inBothModes("who owned an identifier before is shown, and who did at a time", async ({ page, api, tenant, check }) => {
    const ann = await api.create("Ann Lee", ["handle:shared", "handle:ann"]);
    const bob = await api.create("Bob Ray");
    // Times have milliseconds: neither change may share its own with this one.
    await pause(5);
    const before = new Date().toISOString();
    await pause(5);
    await api.call("Registry.MoveIdentity", { fromUserId: ann.userId, toUserId: bob.userId, identifier: { handle: "shared" } });
    await page.goto(`${home(tenant)}/`);
    await paste(page, "@shared");
    const owners = page.getByRole("region", { name: "Owners" });
    await owners.getByRole("row", { name: /Ann Lee/ }).waitFor();
    await owners.getByRole("row", { name: /Bob Ray.*now/ }).waitFor();
    await check(page);
    await page.getByLabel("Owner at").fill(before.replace(/Z$/, ""));
    await page.getByRole("button", { name: "Show the owner" }).click();
    await page.getByRole("status").getByRole("link", { name: "Ann Lee" }).waitFor();
  });

  inBothModes("a list has the chosen columns, and so have its files: all pages, as the API has them", async ({ page, api, tenant, check }) => {
    const people = Array.from({ length: 60 }, (_, n) => n);
    await Promise.all(people.map((n) => api.create(`Person "${n}", =1+1`, [`email:p${n}@example.com`], { team: n % 3 ? "red" : "blue" })));
    await page.goto(`${home(tenant)}/`);
    await paste(page, 'attributes.team = "red"');
    await page.getByRole("link", { name: "Columns" }).click();
    await page.getByRole("checkbox", { name: "team" }).check();
    await check(page);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("columnheader", { name: "team" }).waitFor();
    const expected = await api.search('attributes.team = "red"');

    const link = (name) => page.getByRole("link", { name });
    const lines = (await download(page, link("Export as JSON Lines"))).trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(lines.map((line) => (line.user ?? line).userId), expected.map((user) => user.userId));
    const csv = await download(page, link("Export as CSV"));
    const rows = csv.trim().split(/\r?\n/);
    assert.equal(rows.length, expected.length + 1);
    assert.match(rows[0], /team/);
    for (const [n, user] of expected.entries()) {
      // By a separator the name has a formula, which gets an apostrophe.
      const cell = user.displayName.replaceAll('"', '""').replace(", =", ",' =");
      assert.ok(rows[n + 1].includes(cell), rows[n + 1]);
    }
  });
});
