// The search box: what people paste, and whom it finds.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Api } from "../harness/api.mjs";
import { checkPage } from "../harness/checks.mjs";
import { openServer } from "../harness/shared.mjs";
import { heading, home, paste, sees } from "../harness/steps.mjs";
import { visit } from "../harness/visit.mjs";
import { inBothModes } from "../harness/variants.mjs";

/** What is pasted, how it is read, and who it is. */
const PASTES = [
  ["(415) 555-2671", "phone, United States, +14155552671"],
  ["Joe.Smith@Example.com", "email, joe.smith@example.com"],
  ["@joe", "handle, joe"],
  ["github/583231", "social, github/583231"],
  ["https://www.linkedin.com/in/joe.e.smith/?trk=profile", "url, https://www.linkedin.com/in/joe.e.smith"],
];

describe("search", () => {
  inBothModes(
    "every spelling of an identifier is read rightly and finds its owner",
    async ({ page, api, check }) => {
      const { userId } = await api.resolve("handle:joe");
      await page.goto("/console/t/default/");
      for (const [text, reading] of PASTES) {
        await paste(page, text);
        await sees(page, reading);
        const path = new URL(page.url());
        assert.match(path.pathname + path.search, /^\/console\/t\/default\/search\/\d+$/, "personal data in the URL");
        const owner = page.getByRole("region", { name: "Identifier" }).getByRole("link", { name: "Joe Smith" });
        assert.ok((await owner.getAttribute("href")).endsWith(`/users/${userId}`), text);
      }
      await check(page);
      await page.getByRole("region", { name: "Identifier" }).getByRole("link", { name: "Joe Smith" }).click();
      await heading(page, "Joe Smith");
      await sees(page, userId);
    },
    { tenant: "default" },
  );

  inBothModes(
    "an id leads to its user",
    async ({ page, api }) => {
      const { userId } = await api.resolve("handle:grace");
      await page.goto("/console/t/default/");
      await paste(page, ` ${userId.toUpperCase()} `);
      await heading(page, "Grace Okafor");
      assert.equal(new URL(page.url()).pathname, `/console/t/default/users/${userId}`);
    },
    { tenant: "default" },
  );

  inBothModes("a filter lists all users that match, page by page", async ({ page, api, tenant, check }) => {
    const names = Array.from({ length: 60 }, (_, n) => `Person ${String(n).padStart(2, "0")}`);
    await Promise.all(names.map((name, n) => api.create(name, [`handle:person${n}`], { team: n < 55 ? "red" : "blue" })));
    await page.goto(`${home(tenant)}/`);
    await paste(page, 'attributes.team = "red"');
    await sees(page, "filter");
    const found = [];
    for (;;) {
      const rows = page.getByRole("region", { name: "Users" }).getByRole("rowheader");
      await rows.first().waitFor();
      found.push(...(await rows.allInnerTexts()).map((text) => text.trim()));
      const next = page.getByRole("link", { name: "Next page" });
      if ((await next.count()) === 0) {
        break;
      }
      const address = page.url();
      await next.click();
      await page.waitForURL((url) => url.href !== address);
    }
    const expected = (await api.search('attributes.team = "red"')).map((user) => user.displayName);
    assert.deepEqual(found, expected);
    assert.equal(expected.length, 55);
    await check(page);
  });

  inBothModes(
    "names are found by their words, without accents",
    async ({ page }) => {
      await page.goto("/console/t/default/");
      await paste(page, "maria nu");
      await page.getByRole("main").getByRole("link", { name: "María José Núñez" }).waitFor();
    },
    { tenant: "default" },
  );

  inBothModes("nobody, a free identifier and a held one are told apart", async ({ page, api, tenant, check }) => {
    const user = await api.create("Ann", ["handle:ann", "email:ann@example.com"]);
    await api.call("Registry.UnlinkIdentity", { userId: user.userId, identifier: { handle: "ann" } });
    await page.goto(`${home(tenant)}/`);
    await paste(page, "@nobody-at-all");
    await sees(page, "Nobody owns it. It is free.");
    await paste(page, "@ann");
    await sees(page, "Held for its former owner until");
    await paste(page, "state = DISABLED");
    await sees(page, "No user matches");
    await check(page);
  });

  inBothModes("a filter is made and taken back by clicks", async ({ page, api, tenant, check, scripts }) => {
    const odd = `a "b": c\\d * ü https://x.com/joe`;
    for (const [name, team] of [["Ann", "red"], ["Bob", odd], ["Cleo", odd]]) {
      await api.create(name, [], { team });
    }
    await api.call("Registry.DisableUser", { userId: (await api.search("display_name = Cleo"))[0].userId });
    await page.goto(`${home(tenant)}/`);
    await page.getByRole("button", { name: "List all users" }).click();
    await page.getByText("+ Filter").click();
    await page.getByRole("combobox", { name: "Attribute" }).pressSequentially("team");
    await page.keyboard.press("Tab");
    if (scripts) {
      await sees(page, "values of the first 3 users of this list");
      assert.ok((await page.locator("#values option").evaluateAll((all) => all.map(({ value }) => value))).includes(odd));
    }
    await page.getByRole("combobox", { name: "Value", exact: true }).fill(odd);
    await check(page);
    await page.getByRole("button", { name: "Add", exact: true }).click();
    const rows = page.getByRole("region", { name: "Users" }).getByRole("rowheader");
    const chips = page.getByRole("group", { name: "Filters" }).getByRole("link");
    await chips.first().waitFor();
    assert.deepEqual((await rows.allInnerTexts()).sort(), ["Bob", "Cleo"]);
    await page.getByText("+ Filter").click();
    await page.getByRole("combobox", { name: "State" }).selectOption("disabled");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await chips.nth(1).waitFor();
    assert.deepEqual(await rows.allInnerTexts(), ["Cleo"]);
    await check(page);
    await chips.first().click();
    await chips.first().getByText("state = DISABLED").waitFor();
    assert.equal(await chips.count(), 1);
    await chips.first().click();
    await sees(page, "all users");
    assert.equal(await rows.count(), 3);
  });

  test("the address of a search is one for colleagues, and no server is told its text", async () => {
    const server = await openServer();
    const text = 'display_name = "Joe*" AND state = ACTIVE';
    let link;
    const addresses = [];
    await visit(server, {}, async (page) => {
      await page.goto("/console/t/default/");
      await paste(page, text);
      await sees(page, "Joe Smith");
      link = page.url();
    });
    assert.equal(new URLSearchParams(new URL(link).hash.slice(1)).get("q"), text);
    await visit(server, {}, async (page) => {
      page.on("request", (request) => addresses.push(request.url(), request.headers().referer ?? ""));
      await page.goto(link);
      await sees(page, "Joe Smith");
      assert.equal(await page.getByRole("searchbox", { name: "Search" }).inputValue(), text);
      assert.notEqual(new URL(page.url()).pathname, new URL(link).pathname);
      await page.getByRole("link", { name: "Joe Smith" }).first().click();
      await heading(page, "Joe Smith");
      await page.goBack();
      await sees(page, "Joe Smith");
    });
    assert.deepEqual(addresses.filter((address) => address.includes("Joe")), []);
  });

  test("the address of an audit is one for colleagues, too", async () => {
    const server = await openServer();
    let link;
    await visit(server, {}, async (page) => {
      await page.goto(`${home("default")}/audit`);
      await page.getByLabel("Caller").fill("canary-caller");
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await sees(page, "No matching changes.");
      link = page.url();
    });
    assert.equal(new URLSearchParams(new URL(link).hash.slice(1)).get("caller"), "canary-caller");
    await visit(server, {}, async (page) => {
      const addresses = [];
      page.on("request", (request) => addresses.push(request.url(), request.headers().referer ?? ""));
      await page.goto(link);
      await sees(page, "No matching changes.");
      assert.equal(await page.getByLabel("Caller").inputValue(), "canary-caller");
      assert.deepEqual(addresses.filter((address) => address.includes("canary")), []);
    });
    await visit(server, { scripts: false }, async (page) => {
      await page.goto(link);
      await sees(page, "that link can be passed on");
    });
  });

  for (const [width, height] of [[1400, 900], [390, 800]]) {
    test(`the button of the filters is in view at ${width} x ${height}`, async () => {
      const server = await openServer();
      await visit(server, { settings: { viewport: { width, height } } }, async (page) => {
        await page.goto("/console/t/default/");
        await page.getByRole("button", { name: "List all users" }).click();
        await page.getByText("+ Filter").click();
        const box = await page.getByRole("button", { name: "Add", exact: true }).boundingBox();
        assert.ok(box.y >= 0 && box.y + box.height <= height, JSON.stringify(box));
      });
    });
  }

  inBothModes("a search is saved by name, found on the start page, and removed", async ({ page, api, tenant, check }) => {
    await api.create("Ann", [], { team: "red" });
    await page.goto(`${home(tenant)}/`);
    await paste(page, 'attributes.team = "red"');
    await page.getByText("Save", { exact: true }).click();
    await page.getByRole("textbox", { name: "Name of the search" }).fill("The <red> team");
    await check(page);
    await page.getByRole("button", { name: "Save the search" }).click();
    await page.getByText("Saved as The <red> team").waitFor();
    await page.goto(`${home(tenant)}/`);
    await heading(page, "Saved searches");
    await check(page);
    await page.getByRole("link", { name: "The <red> team" }).click();
    await page.getByRole("rowheader", { name: "Ann" }).waitFor();
    await page.goto(`${home(tenant)}/`);
    await page.getByRole("button", { name: "Remove The <red> team" }).click();
    await heading(page, "Who is this?");
    assert.equal(await page.getByText("Saved searches").count(), 0);
  });

  test("a click anywhere on a row opens its user; selected text, other links and keys do what they do elsewhere", async () => {
    const server = await openServer();
    const api = new Api(server.origin, "rows");
    const { userId } = await api.create("Ann Lee", ["handle:annlee", "email:ann@rows.example"], { team: "red" });
    await visit(server, {}, async (page) => {
      const list = async () => {
        await page.goto(`${home("rows")}/`);
        await page.getByRole("button", { name: "List all users" }).click();
        return page.getByRole("row", { name: /Ann Lee/ });
      };
      const user = new RegExp(`/users/${userId}$`);
      for (const cell of [1, 2, 3]) {
        const row = await list();
        const { width, height } = await row.locator("td, th").nth(cell).boundingBox();
        await row.locator("td, th").nth(cell).click({ position: { x: width - 3, y: height / 2 } });
        await page.waitForURL(user);
      }

      const row = await list();
      const address = page.url();
      const text = await row.getByText("ann@rows.example").boundingBox();
      await page.mouse.move(text.x + 12, text.y + text.height / 2);
      await page.mouse.down();
      await page.mouse.move(text.x + text.width - 12, text.y + text.height / 2, { steps: 5 });
      await page.mouse.up();
      assert.match(await page.evaluate(() => String(getSelection())), /rows/);
      assert.equal(page.url(), address, "selecting text opened the row");
      await page.evaluate(() => getSelection().removeAllRanges());
      await row.locator(".select").click({ position: { x: 2, y: 2 } });
      assert.equal(await row.getByRole("checkbox").isChecked(), true);
      assert.equal(page.url(), address, "ticking opened the row");

      const [tab] = await Promise.all([page.context().waitForEvent("page"), row.locator("td").last().click({ modifiers: ["Control"] })]);
      await tab.waitForURL(user);
      assert.equal(page.url(), address, "Ctrl opens a tab");
      await tab.close();
      const [second] = await Promise.all([page.context().waitForEvent("page"), row.getByRole("link", { name: "Ann Lee" }).click({ modifiers: ["Control"] })]);
      await second.waitForURL(user);
      assert.equal(page.url(), address);
      await second.close();
      await page.getByRole("columnheader", { name: "Name" }).getByRole("link").click();
      await page.waitForURL(/order=display_name$/);
    });
  });

  test("results appear while somebody types, and are open by the keyboard", async () => {
    await visit(await openServer(), {}, async (page, { faults }) => {
      await page.goto("/console/t/default/");
      await page.getByRole("searchbox").pressSequentially("maria jo");
      const suggestion = page.getByRole("search").getByRole("link", { name: "María José Núñez" });
      await suggestion.waitFor();
      await checkPage(page, faults);
      await page.getByRole("searchbox").press("ArrowDown");
      await page.keyboard.press("Enter");
      await heading(page, "María José Núñez");
    });
  });

  inBothModes("a filter with an error says where it is", async ({ page, tenant, check }) => {
    await page.goto(`${home(tenant)}/`);
    await paste(page, "state = NONSENSE");
    await page.getByRole("alert").getByText("expected one of ACTIVE, DISABLED").waitFor();
    await check(page);
  });
});
