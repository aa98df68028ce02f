// Changing all users that a filter matches: dry run, apply, stop and resume.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { heading, home, paste, settled } from "../harness/steps.mjs";
import { inBothModes } from "../harness/variants.mjs";

const completed = (page) => page.getByRole("status").filter({ hasText: /^completed$/ });

/** Users of two teams. */
async function teams(api, red, blue) {
  const create = (n, team) => api.create(`Person ${n}`, [], { team });
  await Promise.all(Array.from({ length: red + blue }, (_, n) => create(n, n < red ? "red" : "blue")));
}

const disabled = async (api) => (await api.search("state = DISABLED")).length;

describe("bulk changes", () => {
  inBothModes("begin with a dry run, and change what the filter matches", async ({ page, api, tenant, check, scripts }) => {
    await teams(api, 30, 3);
    await page.goto(`${home(tenant)}/`);
    await paste(page, 'attributes.team = "red"');
    await page.getByRole("link", { name: "Change all that match" }).click();
    assert.equal(await page.getByLabel("Filter").inputValue(), 'attributes.team = "red"');
    await page.getByLabel("What to do").selectOption({ label: "Disable the users" });
    await page.getByLabel("Reason").fill("the team is gone");
    await check(page);
    await page.getByRole("button", { name: "Start the dry run" }).click();
    await settled(page, scripts, page.getByRole("button", { name: "Disable 30 users" }));
    assert.equal(await disabled(api), 0, "the dry run has changed users");
    await check(page);
    await page.getByRole("button", { name: "Disable 30 users" }).click();
    await heading(page, /^Bulk change$/);
    await settled(page, scripts, completed(page));
    assert.equal(await disabled(api), 30);
    await page.getByRole("link", { name: /^History/ }).click();
    await page.getByText("the team is gone").first().waitFor();
    await page.goto(`${home(tenant)}/bulk`);
    await check(page);
  });

  inBothModes("can be stopped and resumed, and change each user once", async ({ page, api, tenant, scripts }) => {
    await teams(api, 150, 0);
    await page.goto(`${home(tenant)}/bulk/new`);
    await page.getByLabel("Filter").fill('attributes.team = "red"');
    await page.getByLabel("What to do").selectOption({ label: "Disable the users" });
    await page.getByRole("button", { name: "Start the dry run" }).click();
    const apply = page.getByRole("button", { name: "Disable 150 users" });
    await settled(page, scripts, apply);
    await apply.click();
    const stop = page.getByRole("button", { name: "Stop" });
    const resume = page.getByRole("button", { name: "Resume" });
    await stop.or(completed(page)).first().waitFor();
    // It may end before it is stopped.
    await stop.click({ timeout: 1_000 }).catch(() => undefined);
    await settled(page, scripts, resume.or(completed(page)));
    if (await resume.isVisible()) {
      await resume.click();
    }
    await settled(page, scripts, completed(page));
    assert.equal(await disabled(api), 150);
    const bulk = page.url().match(/bulk\/([^/?]+)/)[1];
    const users = await api.search("");
    for (const { userId } of users.slice(0, 20)) {
      const events = (await api.history(userId)).filter(({ operationId }) => operationId === bulk);
      assert.equal(events.length, 1, userId);
    }
  });
});
