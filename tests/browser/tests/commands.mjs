// "The same by command": what the pages show works, and is safe to paste into a shell whatever users are called.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe } from "node:test";
import { promisify } from "node:util";
import { BUILD } from "../harness/shared.mjs";
import { heading, home, paste } from "../harness/steps.mjs";
import { inBothModes } from "../harness/variants.mjs";

const MARK = join(BUILD, "a-command-ran");
const HOSTILE = `x'; touch ${MARK}; $(touch ${MARK}) \`touch ${MARK}\` "$HOME"`;

/** The commands of a page, by their headings. */
async function commands(page) {
  const details = page.getByRole("main").locator("details", { hasText: "The same by command" });
  await details.getByText("The same by command").click();
  const entries = [];
  for (const name of ["Command line", "curl", "grpcurl"]) {
    const text = details.getByRole("heading", { name, exact: true }).locator("xpath=following-sibling::pre[1]");
    entries.push([name, await text.innerText()]);
  }
  return Object.fromEntries(entries);
}

/** Runs a command of a page as a person would who has set the variables that it names. */
async function run(command, { origin, grpc }) {
  const script = `polynym() { "$POLYNYM_BIN" "$@"; }\n${command}`;
  const env = { ...process.env, POLYNYM_SERVER: `http://${grpc}`, POLYNYM_HTTP: origin, TOKEN: "" };
  return (await promisify(execFile)("sh", ["-c", script], { env })).stdout;
}

describe("commands", () => {
  inBothModes("do what the pages do", async ({ page, api, server, tenant }) => {
    const { userId } = await api.create("Ann", ["handle:ann"], { team: "red" });
    await page.goto(`${home(tenant)}/users/${userId}`);
    const ofUser = await commands(page);
    assert.ok((await run(ofUser["Command line"], server)).includes(userId));
    assert.equal(JSON.parse(await run(ofUser.curl, server)).user.userId, userId);
    assert.match(ofUser.grpcurl, /polynym\.v1\.DirectoryService\/GetUser/);
    for (const text of ["@ann", 'attributes.team = "red"']) {
      await paste(page, text);
      await heading(page, "Results");
      const ofSearch = await commands(page);
      assert.ok((await run(ofSearch["Command line"], server)).includes(userId), text);
      assert.ok((await run(ofSearch.curl, server)).includes(userId), text);
    }
  });

  inBothModes("run nothing else, whatever was pasted", async ({ page, server, tenant, api }) => {
    await api.create("Ann", [], { [HOSTILE]: HOSTILE });
    const escaped = HOSTILE.replaceAll('"', '\\"');
    await page.goto(`${home(tenant)}/`);
    await paste(page, `attributes."${escaped}" = "${escaped}"`);
    await heading(page, "Results");
    const shown = await commands(page);
    assert.ok((await run(shown["Command line"], server)).includes("Ann"));
    assert.ok((await run(shown.curl, server)).includes("Ann"));
    assert.ok(!existsSync(MARK), shown["Command line"]);
  });
});
