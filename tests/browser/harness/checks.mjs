// The checks that every page must pass: accessibility in both themes, valid HTML, headers, layout, nothing run.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { isFirefox } from "./launch.mjs";
import { BUILD } from "./shared.mjs";

const { resolve } = createRequire(import.meta.url);
const AXE = readFileSync(resolve("axe-core/axe.min.js"), "utf8");
const VALIDATOR = resolve("vnu-jar/build/dist/vnu.jar");
/** The rules that depend on colours, and all rules of WCAG 2.2 AA. */
const RULES = {
  dark: { type: "rule", values: ["color-contrast", "link-in-text-block"] },
  light: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] },
};
const SEEN = join(BUILD, "pages");

mkdirSync(SEEN);

/** Checks the page that is open. */
export async function checkPage(page, faults = []) {
  await checkAccessibility(page);
  await checkLayout(page);
  await savePage(page);
  assert.deepEqual(faults, []);
}

/** Finds violations of WCAG 2.2 AA in both themes, or in that of Firefox, which cannot be told another one. */
export async function checkAccessibility(page) {
  await page.evaluate(AXE);
  for (const [colorScheme, runOnly] of isFirefox ? [["light", RULES.light]] : Object.entries(RULES)) {
    await page.emulateMedia({ colorScheme });
    const violations = await page.evaluate(async (runOnly) => {
      const { violations } = await globalThis.axe.run({ runOnly, resultTypes: ["violations"] });
      return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, help, nodes }) => ({ id, help, nodes: nodes.slice(0, 5).map((node) => node.failureSummary + " " + node.html) }));
    }, runOnly);
    assert.deepEqual(violations, [], `${page.url()} in the ${colorScheme} theme`);
  }
}

/** The violations of WCAG 2.2 AA of any impact in the page as it is. What an open menu covers in part is no target then. */
export async function violations(page) {
  await page.evaluate(AXE);
  return page.evaluate(async (runOnly) => {
    const sheet = [...document.querySelectorAll("details[open] > .sheet")].at(-1);
    const { top, bottom, left, right } = sheet?.getBoundingClientRect() ?? {};
    const isCovered = (element) => {
      const own = element.getBoundingClientRect();
      return !sheet.contains(element) && own.top < bottom && own.bottom > top && own.left < right && own.right > left;
    };
    const exclude = sheet ? [...document.querySelectorAll("main :is(a, button, input)")].filter(isCovered) : [];
    const { violations } = await globalThis.axe.run({ include: document, exclude }, { runOnly, resultTypes: ["violations"] });
    return violations.flatMap(({ id, impact, nodes }) => nodes.slice(0, 3).map((node) => `${id} (${impact}): ${node.failureSummary} ${node.html}`));
  }, RULES.light);
}

/** Nothing is wider than the window. */
export async function checkLayout(page) {
  const { content, window, widest } = await page.evaluate(() => {
    const window = document.documentElement.clientWidth;
    const beyond = [...document.body.querySelectorAll("*")].filter((element) => element.getBoundingClientRect().right > window + 1);
    const widest = beyond.slice(0, 5).map((element) => element.cloneNode(false).outerHTML);
    return { content: document.documentElement.scrollWidth, window, widest };
  });
  assert.ok(content <= window, `${page.url()} is ${content} px wide in a window of ${window} px: ${widest.join(" ")}`);
}

/** Keeps the page as the server sends it for the validator. */
export async function savePage(page) {
  const response = await page.request.get(page.url());
  assert.match(response.headers()["content-type"], /^text\/html; ?charset=utf-8$/i);
  keep(await response.text(), page.url());
}

/** Keeps the text of a page for the validator. */
export function keep(html, url) {
  const name = createHash("sha256").update(html).digest("hex").slice(0, 16);
  writeFileSync(join(SEEN, `${name}.html`), `${html}<!-- ${new URL(url).pathname} -->\n`);
}

/** Validates all pages that the tests have kept, in one process. Returns the errors, and the number of pages. */
export async function validate() {
  const pages = readdirSync(SEEN).length;
  const args = ["-Xss4m", "-XX:TieredStopAtLevel=1", "-jar", VALIDATOR, "--errors-only", "--format", "json", "--stdout", "--exit-zero-always", SEEN];
  const { stdout } = await promisify(execFile)("java", args, { maxBuffer: 64 << 20 });
  const errors = JSON.parse(stdout).messages.map(({ url, lastLine, message, extract }) => {
    const path = readFileSync(new URL(url), "utf8").match(/<!-- (\S+) -->\n$/)?.[1];
    return `${path}:${lastLine}: ${message}: ${extract?.trim().slice(0, 200)}`;
  });
  return { pages, errors: [...new Set(errors)] };
}
