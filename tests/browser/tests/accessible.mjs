// Accessibility of the console in many states: each page with data and without, with errors, with menus and dialogs open;
// in both themes, on a phone, in German. Usually a part of them; all with `STATES=all`.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Api } from "../harness/api.mjs";
import { violations } from "../harness/checks.mjs";
import { isFirefox } from "../harness/launch.mjs";
import { TENANT, guarded, prepare, scenes } from "../harness/scenes.mjs";
import { guardedServer, openServer } from "../harness/shared.mjs";
import { signIn } from "../harness/steps.mjs";
import { visit } from "../harness/visit.mjs";

const isWhole = process.env.STATES === "all";
/** Of so many states, one is looked at usually. */
const SAMPLE = 14;
const [DESK, PHONE] = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];
const LOOKS = {
  en: [["light", DESK], ["dark", DESK], ["light", PHONE], ["dark", PHONE]],
  de: [["light", DESK], ["dark", PHONE]],
};

/** Looks at the scenes in a language. Returns the number of states, and what is wrong in them. */
async function look(page, language, all) {
  await page.context().addCookies([{ name: "polynym_language", value: language, url: page.url() }]);
  const faults = [];
  let [count, state] = [0, 0];
  for (const [name, open] of all) {
    const looks = LOOKS[language].filter(() => isWhole || state++ % SAMPLE === 0);
    let isOpen = false;
    for (const [colorScheme, size] of looks) {
      const at = `${name} (${language}, ${colorScheme}, ${size.width} px)`;
      try {
        await page.emulateMedia({ colorScheme });
        if (!isOpen) {
          await page.setViewportSize(DESK);
          await open(page);
        }
        isOpen = true;
        await page.setViewportSize(size);
        faults.push(...(await violations(page)).map((violation) => `${at}: ${violation}`));
      } catch (error) {
        faults.push(`${at}: ${error.message}`);
      }
      count += 1;
    }
  }
  return { count, faults };
}

describe("accessibility", { skip: isFirefox }, () => {
  test(`of ${isWhole ? "all" : "some"} states`, async (context) => {
    const [open, closed] = [await openServer(), await guardedServer()];
    const all = scenes(await prepare(new Api(open.origin, TENANT)));
    let count = 0;
    const faults = [];
    const add = (seen) => {
      count += seen.count;
      faults.push(...seen.faults);
    };
    for (const language of Object.keys(LOOKS)) {
      await visit(open, {}, async (page) => {
        await page.goto("/console/");
        add(await look(page, language, all));
      });
      await visit(closed, {}, async (page) => {
        await signIn(page, closed.credentials.tokens.admin);
        add(await look(page, language, guarded));
      });
    }
    context.diagnostic(`${count} states`);
    assert.equal(faults.length, 0, faults.join("\n"));
    assert.ok(count >= (isWhole ? 400 : 30), `${count} states`);
  });
});
