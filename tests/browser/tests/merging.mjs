// Duplicates, and merging two users: preview, conflicts, undo.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { heading, home, sees } from "../harness/steps.mjs";
import { inBothModes } from "../harness/variants.mjs";

async function twoUsers(api) {
  const ann = await api.create("Ann Lee", ["email:ann.lee@example.com", "handle:annlee"], { team: "red", city: "Oslo" });
  const anna = await api.create("Anna Lee", ["email:annalee@example.org", "handle:anna_lee"], { team: "blue" });
  return { ann, anna };
}

describe("merging", () => {
  inBothModes("two users become one after a preview, and two again", async ({ page, api, tenant, check }) => {
    const { ann, anna } = await twoUsers(api);
    await page.goto(`${home(tenant)}/users/${ann.userId}/merge`);
    await page.getByLabel("The other user").fill("@anna_lee");
    await page.getByRole("button", { name: "Find the user" }).click();
    await heading(page, "Side by side");
    const conflicts = page.getByRole("region", { name: "Conflicts" });
    assert.deepEqual(
      await conflicts.getByRole("row", { name: "team" }).getByRole("cell").allInnerTexts(),
      ["red", "blue"],
    );
    await sees(page, "You can undo the merge until");
    await page.getByRole("link", { name: "Keep the values of the other user" }).click();
    await page.getByRole("row", { name: "team blue red" }).waitFor();
    await check(page);
    assert.equal((await api.resolve("handle:anna_lee")).userId, anna.userId, "the preview has merged the users");

    await page.getByLabel("Reason").fill("the same person");
    await page.getByRole("button", { name: "Merge the users" }).click();
    await page.getByRole("status").getByText("The users are merged:").waitFor();
    const merged = await api.resolve("handle:anna_lee");
    assert.equal(merged.userId, ann.userId);
    assert.equal(merged.attributes.team.stringValue, "blue");
    assert.equal((await api.history(ann.userId))[0].reason, "the same person");

    await page.getByRole("link", { name: "Undo the merge" }).first().click();
    await heading(page, "What comes back");
    await check(page);
    await page.getByRole("button", { name: "Undo the merge" }).click();
    await page.waitForURL((url) => !url.pathname.includes("unmerge"));
    assert.equal((await api.resolve("handle:anna_lee")).userId, anna.userId);
    assert.equal((await api.resolve("handle:annlee")).attributes.team.stringValue, "red");
  });

  inBothModes("a user that changes after the preview is shown again before it is merged", async ({ page, api, tenant }) => {
    const { ann, anna } = await twoUsers(api);
    await page.goto(`${home(tenant)}/users/${ann.userId}/merge/${anna.userId}`);
    await heading(page, "Side by side");
    await api.call("Registry.UpdateUser", { user: { userId: anna.userId, displayName: "Anna Berg" }, updateMask: "displayName" });
    await page.getByRole("button", { name: "Merge the users" }).click();
    const again = page.getByRole("button", { name: "Apply again" });
    await again.waitFor();
    await sees(page, "Anna Berg");
    assert.equal((await api.resolve("handle:anna_lee")).userId, anna.userId, "merged what nobody has seen");
    await again.click();
    await page.getByRole("status").getByText("The users are merged:").waitFor();
    assert.equal((await api.resolve("handle:anna_lee")).userId, ann.userId);
  });

  inBothModes("duplicates come with their reasons, and lead to a preview", async ({ page, api, tenant, check }) => {
    await api.create("Maria Rossi", ["email:maria.rossi@example.com"]);
    await api.create("María Rossi", ["email:maria.rossi+shop@example.com", "handle:mrossi"]);
    await api.create("Somebody Else", ["email:else@example.com"]);
    await page.goto(`${home(tenant)}/duplicates`);
    const score = page.getByLabel("Minimum score");
    await score.press("ControlOrMeta+a");
    await score.pressSequentially("50");
    await page.getByRole("button", { name: "Search for duplicates" }).click();
    const pair = page.getByRole("main").getByRole("link", { name: /Rossi and .*Rossi/ });
    await pair.waitFor();
    await sees(page, "1 pair among 3 users");
    await check(page);
    await pair.click();
    await heading(page, "Side by side");
  });
});
