// Signing in and out.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { checkPage } from "../harness/checks.mjs";
import { browser, guardedServer, openServer } from "../harness/shared.mjs";
import { heading, paste, sees, signIn } from "../harness/steps.mjs";
import { visit } from "../harness/visit.mjs";
import { inBothModes } from "../harness/variants.mjs";

describe("signing in", () => {
  inBothModes("without credentials everybody is signed in as anonymous", async ({ page }) => {
    await page.goto("/console/");
    await heading(page, "Who is this?");
    await page.getByText("anonymous", { exact: true }).click();
    await sees(page, "Role: admin");
  });

  test("a link of another site opens the session that there is", async () => {
    const server = await openServer();
    const link = `<a href="${server.origin}/console/t/default/?x=1">Look</a>`;
    const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(link)).listen(0, "127.0.0.1");
    await once(other, "listening");
    const context = await (await browser()).newContext();
    try {
      const page = await context.newPage();
      await page.goto(`${server.origin}/console/`);
      const cookies = await context.cookies();
      assert.equal(cookies.length, 1);
      await page.goto(`http://localhost:${other.address().port}/`);
      await page.getByRole("link", { name: "Look" }).click();
      await heading(page, "Who is this?");
      assert.equal(new URL(page.url()).search, "?x=1");
      assert.deepEqual(await context.cookies(), cookies);
    } finally {
      await context.close();
      other.close();
    }
  });

  for (const scripts of [true, false]) {
    const suffix = `(${scripts ? "with" : "without"} scripts)`;

    test(`a wrong token says what to do, a right one leads on ${suffix}`, async () => {
      const server = await guardedServer();
      await visit(server, { scripts }, async (page) => {
        await page.goto("/console/t/default/users/none");
        await page.getByLabel("Token").fill("pn_wrong");
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("alert").getByText("not valid").waitFor();
        await page.getByRole("alert").getByText("pn_").waitFor();
        assert.equal(await page.getByLabel("Token").inputValue(), "", "the page repeats the token");
        await page.getByLabel("Token").fill(server.credentials.tokens.viewer);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("navigation", { name: "Pages" }).waitFor();
        assert.equal(new URL(page.url()).pathname, "/console/t/default/users/none");
      });
    });

    test(`after signing out, Back shows nothing ${suffix}`, async () => {
      const server = await guardedServer();
      await visit(server, { scripts }, async (page) => {
        await signIn(page, server.credentials.tokens.admin, "/console/t/default/");
        await page.getByRole("searchbox").fill("@joe");
        await page.getByRole("searchbox").press("Enter");
        await page.getByRole("link", { name: "Joe Smith" }).first().click();
        await heading(page, "Joe Smith");
        await page.getByText("admin", { exact: true }).click();
        await page.getByRole("button", { name: "Sign out" }).click();
        await page.getByLabel("Token").waitFor();
        await page.goBack();
        await page.getByLabel("Token").waitFor();
        assert.equal(await page.getByText("Joe Smith").count(), 0);
      });
    });

    test(`a form that is sent after the session has ended is kept, and sent again ${suffix}`, async () => {
      const server = await guardedServer();
      await visit(server, { scripts }, async (page, { context }) => {
        await signIn(page, server.credentials.tokens.viewer, "/console/t/default/");
        const other = await context.newPage();
        await other.goto("/console/");
        await other.getByText("viewer", { exact: true }).click();
        await other.getByRole("button", { name: "Sign out" }).click();
        await other.getByLabel("Token").waitFor();
        await paste(page, "@joe");
        await page.getByRole("alert").getByText("Your form is kept").waitFor();
        await page.getByLabel("Token").fill(server.credentials.tokens.viewer);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("button", { name: "Send the form" }).click();
        await sees(page, "handle, joe");
      });
    });
  }

  test("an ended session leaves what somebody types alone, and ends panels", async () => {
    const server = await guardedServer();
    await visit(server, {}, async (page, { context }) => {
      await signIn(page, server.credentials.tokens.viewer, "/console/t/default/");
      const health = await context.newPage();
      await health.goto("/console/health");
      await heading(health, "Health");
      await context.clearCookies();
      const typed = page.waitForResponse((response) => response.status() === 401);
      await page.getByRole("searchbox").fill("@joe");
      await typed;
      await health.getByLabel("Token").waitFor();
      assert.equal(new URL(health.url()).searchParams.get("next"), "/console/health");
      assert.equal(await page.getByLabel("Token").count(), 0);
      assert.equal(await page.getByRole("searchbox").inputValue(), "@joe");
    });
  });

  test("the page is accessible", async () => {
    const server = await guardedServer();
    await visit(server, {}, async (page) => {
      await page.goto("/console/sign-in");
      await checkPage(page);
    });
  });
});
