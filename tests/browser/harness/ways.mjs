// A person's ways through the console. Each runs twice: with scripts, and without.
import { test } from "node:test";
import { Api } from "./api.mjs";
import { guardedServer, openServer } from "./shared.mjs";
import { visit } from "./visit.mjs";

let tenants = 0;

/** The path of a tenant's pages. */
export const home = (tenant) => `/console/t/${tenant}`;

/** Runs a test with scripts and without, each in a tenant of its own on the server without credentials. */
export function ways(name, body, options = {}) {
  for (const scripts of [true, false]) {
    test(`${name} (${scripts ? "with" : "without"} scripts)`, async () => {
      const server = await openServer();
      const tenant = options.tenant ?? `tenant-${++tenants}`;
      const api = new Api(server.origin, tenant);
      await visit(server, { scripts, ...options }, (page, more) => body({ page, api, tenant, server, ...more }));
    });
  }
}

/** Runs a test in a browser that is signed in with the token of a role. */
export function asRole(role, name, body, options = {}) {
  test(name, async () => {
    const server = await guardedServer();
    const token = server.credentials.tokens[role];
    const api = new Api(server.origin, "default", server.credentials.tokens.admin);
    await visit(server, options, async (page, more) => {
      await signIn(page, token);
      await body({ page, api, server, tenant: "default", ...more });
    });
  });
}

/** Signs in by the page. */
export async function signIn(page, token, path = "/console/") {
  await page.goto(path);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Pastes a text into the search box, and sends it. */
export async function paste(page, text) {
  const box = page.getByRole("searchbox", { name: "Search" });
  await box.fill(text);
  await box.press("Enter");
}

/** Waits for a text. */
export const sees = (page, text) => page.getByText(text).first().waitFor();

/** Waits for a heading. */
export const heading = (page, name) => page.getByRole("heading", { name }).first().waitFor();
