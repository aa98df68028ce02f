// The last test: all pages that the others have seen are valid HTML.
import assert from "node:assert/strict";
import { test } from "node:test";
import { validate } from "../harness/checks.mjs";

test("the Nu validator finds no error in any page", async () => {
  const { pages, errors } = await validate();
  assert.deepEqual(errors, []);
  assert.ok(pages > 0);
});
