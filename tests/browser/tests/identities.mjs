// What can be done with the identities of a user.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { done, heading, home, open, paste, sees } from "../harness/steps.mjs";
import { inBothModes } from "../harness/variants.mjs";

/** Opens what can be done with an identity of the user whose page is open. */
async function change(page, value) {
  const identities = page.getByRole("region", { name: "Identities" });
  await identities.getByRole("button", { name: `Change ${value}` }).click();
  await heading(page, value);
}

const values = (user) => user.identities.map(({ identifier }) => identifier.email ?? identifier.handle ?? identifier.phone?.number);

describe("identities", () => {
  inBothModes("are linked, verified, made primary, replaced and unlinked", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann", ["email:ann@example.com"]);
    await open(page, tenant, userId);
    await page.getByRole("link", { name: "Link an identity" }).click();
    await check(page);
    await page.getByLabel("Identifier", { exact: true }).fill("(415) 555-0199");
    await page.getByLabel("Reason").fill("she called");
    await page.getByRole("button", { name: "Link identity" }).click();
    await done(page);
    await page.getByRole("row", { name: "+14155550199" }).waitFor();
    assert.equal((await api.resolve("phone:+14155550199")).userId, userId);
    assert.equal((await api.history(userId))[0].reason, "she called");

    await change(page, "+14155550199");
    await page.getByLabel("Verified by").fill("call centre");
    await page.getByRole("button", { name: "Mark as verified" }).click();
    await done(page);
    await page.getByRole("row", { name: "by call centre" }).waitFor();

    await api.call("Registry.LinkIdentity", { userId, identifier: { email: "ann.lee@example.com" } });
    await page.reload();
    await change(page, "ann.lee@example.com");
    await check(page);
    await page.getByRole("button", { name: "Make primary" }).click();
    await done(page);
    const primary = (await api.get(userId)).identities.find(({ primary, identifier }) => primary && identifier.email);
    assert.equal(primary.identifier.email, "ann.lee@example.com");

    await change(page, "ann.lee@example.com");
    const replace = page.getByRole("region", { name: "Replace" });
    await replace.getByLabel("Identifier", { exact: true }).fill("ann@new.example.com");
    await replace.getByRole("button", { name: "Replace identity" }).click();
    await done(page);
    assert.equal(await api.resolve("email:ann.lee@example.com"), undefined);
    assert.equal((await api.resolve("email:ann@new.example.com")).userId, userId);

    await change(page, "ann@example.com");
    await page.getByRole("button", { name: "Unlink identity" }).click();
    await done(page);
    assert.deepEqual(values(await api.get(userId)).sort(), ["+14155550199", "ann@new.example.com"]);
  });

  inBothModes("that are no identifiers say why, and keep what was typed", async ({ page, api, tenant, check }) => {
    const { userId } = await api.create("Ann");
    await page.goto(`${home(tenant)}/users/${userId}/link`);
    await page.getByLabel("Kind", { exact: true }).selectOption({ label: "Email" });
    await page.getByLabel("Identifier", { exact: true }).fill("nobody@@example.com");
    await page.getByLabel("Reason").fill("typed badly");
    await page.getByRole("button", { name: "Link identity" }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(await page.getByLabel("Identifier", { exact: true }).inputValue(), "nobody@@example.com");
    assert.equal(await page.getByLabel("Reason").inputValue(), "typed badly");
    await check(page);
  });

  inBothModes("of somebody else name their owner, and can be moved", async ({ page, api, tenant, check }) => {
    const ann = await api.create("Ann Lee", ["email:ann@example.com"]);
    const bob = await api.create("Bob Ray", ["handle:bob", "email:bob@example.com"]);
    await page.goto(`${home(tenant)}/users/${ann.userId}/link`);
    await page.getByLabel("Identifier", { exact: true }).fill("@Bob");
    await page.getByRole("button", { name: "Link identity" }).click();
    const alert = page.getByRole("alert");
    await alert.getByText("IDENTITY_TAKEN").waitFor();
    await alert.getByRole("link", { name: "Bob Ray" }).waitFor();
    await check(page);
    await alert.getByRole("button", { name: "Move it to this user" }).click();
    await heading(page, "Move an identity");
    assert.equal((await api.resolve("handle:bob")).userId, bob.userId, "the preview has moved it");
    await check(page);
    await page.getByRole("button", { name: "Move identity" }).click();
    await done(page);
    assert.equal((await api.resolve("handle:bob")).userId, ann.userId);
  });

  inBothModes("are moved to a user who is chosen by name", async ({ page, api, tenant }) => {
    const ann = await api.create("Ann Lee", ["handle:ann", "email:ann@example.com"]);
    const bob = await api.create("Bob Ray");
    await api.create("Bob Moss");
    await open(page, tenant, ann.userId);
    await change(page, "ann@example.com");
    await page.getByRole("region", { name: "Move to another user" }).getByLabel("User").fill("bob");
    await page.getByRole("button", { name: "Choose user" }).click();
    await page.getByRole("button", { name: "Bob Ray" }).click();
    await page.getByRole("button", { name: "Move identity" }).click();
    await done(page);
    assert.equal((await api.resolve("email:ann@example.com")).userId, bob.userId);
  });

  inBothModes("that nobody owns lead to a new user, or to one that there is", async ({ page, api, tenant, check }) => {
    const bob = await api.create("Bob Ray", ["handle:bob"]);
    await page.goto(`${home(tenant)}/`);
    await paste(page, "New.Person@Example.com");
    await page.getByRole("link", { name: "Create a user with it" }).click();
    await page.getByLabel("Display name", { exact: true }).fill("New Person");
    await check(page);
    await page.getByRole("button", { name: "Create user" }).click();
    await heading(page, "New Person");
    assert.equal((await api.resolve("email:new.person@example.com")).displayName, "New Person");

    await paste(page, "bobby@example.com");
    await page.getByRole("link", { name: "Link it to a user" }).click();
    await page.getByLabel("User", { exact: true }).fill("bob ray");
    await page.getByRole("button", { name: "Find user" }).click();
    const choice = page.getByRole("main").getByRole("link", { name: "Bob Ray" });
    const link = page.getByRole("button", { name: "Link identity" });
    await choice.or(link).first().waitFor();
    if (!(await link.isVisible())) {
      await choice.click();
    }
    await link.click();
    await done(page);
    assert.equal((await api.resolve("email:bobby@example.com")).userId, bob.userId);
  });

  inBothModes("that are held say until when", async ({ page, api, tenant }) => {
    const ann = await api.create("Ann", ["handle:ann"]);
    const bob = await api.create("Bob");
    await api.call("Registry.UnlinkIdentity", { userId: ann.userId, identifier: { handle: "ann" } });
    await page.goto(`${home(tenant)}/users/${bob.userId}/link`);
    await page.getByLabel("Identifier", { exact: true }).fill("@ann");
    await page.getByRole("button", { name: "Link identity" }).click();
    await page.getByRole("alert").getByText("Held until").waitFor();
    await page.getByLabel("Release the hold first").check();
    await page.getByRole("button", { name: "Link identity" }).click();
    await done(page);
    await sees(page, "ann");
    assert.equal((await api.resolve("handle:ann")).userId, bob.userId);
  });
});
