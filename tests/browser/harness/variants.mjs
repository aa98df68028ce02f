// Variants of a test: with scripts and without, or as a role.
import { test } from "node:test";
import { Api } from "./api.mjs";
import { checkPage } from "./checks.mjs";
import { guardedServer, openServer } from "./shared.mjs";
import { signIn } from "./steps.mjs";
import { visit } from "./visit.mjs";

let tenants = 0;

/**
 * Runs a test with scripts and without, each in a tenant of its own on the server without credentials. `check` checks a
 * page that is open, in the run with scripts.
 */
export function inBothModes(name, body, options = {}) {
  for (const scripts of [true, false]) {
    test(`${name} (${scripts ? "with" : "without"} scripts)`, async () => {
      const server = await openServer();
      const tenant = options.tenant ?? `tenant-${++tenants}`;
      const api = new Api(server.origin, tenant);
      await visit(server, { scripts, ...options }, (page, more) => {
        const check = scripts ? (open) => checkPage(open, more.faults) : async () => {};
        return body({ page, api, tenant, server, check, ...more });
      });
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
