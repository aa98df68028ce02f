// What each role sees, and what the server refuses to it whatever it sends.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { pages } from "../harness/pages.mjs";
import { ROLES } from "../harness/server.mjs";
import { heading } from "../harness/steps.mjs";
import { asRole } from "../harness/ways.mjs";

const rank = (role) => ROLES.indexOf(role);

describe("roles", () => {
  for (const role of ROLES) {
    asRole(role, `a ${role} sees links to the pages that it may open, and opens no other`, async ({ page }) => {
      const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
      const shown = await links.evaluateAll((all) => all.map((link) => link.getAttribute("href")));
      for (const { path, title, role: least } of pages("default")) {
        const isAllowed = rank(role) >= rank(least);
        assert.equal(shown.includes(path), isAllowed, `${role} and ${path}`);
        const response = await page.goto(path);
        assert.equal(response.status(), isAllowed ? 200 : 403, `${role} and ${path}`);
        await heading(page, isAllowed ? title : "Not allowed");
      }
    });
  }
});
