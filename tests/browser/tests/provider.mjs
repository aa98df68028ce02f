// Signing in by a provider, as browsers treat the cookies and the policy of the pages.
import assert from "node:assert/strict";
import { appendFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { checkPage } from "../harness/checks.mjs";
import { startProvider } from "../harness/provider.mjs";
import { Credentials, startServer } from "../harness/server.mjs";
import { heading, paste, sees } from "../harness/steps.mjs";
import { visit } from "../harness/visit.mjs";

/** Starts a server whose people sign in by a provider, and stops both after `run`. */
async function withProvider(run) {
  const provider = await startProvider(["support"]);
  const credentials = await Credentials.create();
  const table = `\n[oidc]\nissuer = "${provider.origin}"\nclient_id = "polynym"\nname = "Example SSO"\n
[[oidc.grant]]\ngroup = "support"\nrole = "viewer"\ntenants = ["*"]\n`;
  await appendFile(credentials.file, table);
  const server = await startServer("--sample", "--credentials", credentials.file);
  try {
    await run(server, provider);
  } finally {
    await server.stop();
    await credentials.remove();
    provider.stop();
  }
}

const button = (page) => page.getByRole("button", { name: "Sign in with Example SSO" });

describe("signing in by a provider", () => {
  for (const scripts of [true, false]) {
    const suffix = `(${scripts ? "with" : "without"} scripts)`;

    test(`a person signs in at the provider, comes back, and signs out there, too ${suffix}`, async () => {
      await withProvider(async (server, provider) => {
        await visit(server, { scripts, elsewhere: [provider.origin] }, async (page, { context }) => {
          await page.goto("/console/t/default/audit");
          if (scripts) {
            await checkPage(page);
          }
          await button(page).click();
          await heading(page, "Example SSO");
          await page.getByRole("link", { name: "I am Ann" }).click();
          await heading(page, "Audit");
          assert.equal(new URL(page.url()).pathname, "/console/t/default/audit");
          assert.deepEqual((await context.cookies()).map((cookie) => cookie.name), ["polynym_session"]);
          await page.getByText("oidc:ann@example.org", { exact: true }).click();
          await sees(page, "Role: viewer");
          await page.getByRole("button", { name: "Sign out" }).click();
          await button(page).waitFor();
          assert.equal(provider.signedOut, 1);
          await page.goto("/console/t/default/audit");
          await button(page).waitFor();
        });
      });
    });

    test(`a form of an ended session is sent after signing in at the provider ${suffix}`, async () => {
      await withProvider(async (server, provider) => {
        await visit(server, { scripts, elsewhere: [provider.origin] }, async (page, { context }) => {
          await page.goto("/console/t/default/");
          await button(page).click();
          await page.getByRole("link", { name: "I am Ann" }).click();
          await heading(page, "Who is this?");
          await context.clearCookies();
          await paste(page, "@joe");
          await page.getByRole("alert").getByText("Your form is kept").waitFor();
          await button(page).click();
          await page.getByRole("link", { name: "I am Ann" }).click();
          await page.getByRole("button", { name: "Send the form" }).click();
          await sees(page, "handle, joe");
        });
      });
    });
  }

  test("a provider that is gone has a page that leads back", async () => {
    await withProvider(async (server, provider) => {
      provider.stop();
      await visit(server, {}, async (page) => {
        await page.goto("/console/t/default/audit");
        await button(page).click();
        await page.getByRole("alert").getByText("Example SSO cannot be reached.").waitFor();
        await checkPage(page);
        await page.getByRole("link", { name: "Back to signing in" }).click();
        await button(page).waitFor();
      });
    });
  });
});
