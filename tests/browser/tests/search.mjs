// The search box: what people paste, and whom it finds.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
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
