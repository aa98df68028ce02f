// The console by keyboard alone.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openServer } from "../harness/shared.mjs";
import { heading } from "../harness/steps.mjs";
import { eventually, visit } from "../harness/visit.mjs";

const focused = (page) => page.evaluate(() => document.activeElement?.innerText?.trim() || document.activeElement?.id);

async function focus(page, expected) {
  await eventually(async () => assert.equal(await focused(page), expected));
}

function keys(name, body) {
  test(name, async () => {
    await visit(await openServer(), {}, async (page, more) => {
      // The box of the start page has the focus, where keys are text.
      await page.goto("/console/t/default/bulk");
      await heading(page, "Bulk changes");
      await body(page, more);
    });
  });
}

/** The letters after `g`. */
const LETTERS = {
  d: "Duplicates",
  i: "Import users",
  b: "Bulk changes",
  a: "Audit",
  e: "Events of",
  l: "Deliveries",
  s: "Usage of",
  p: "Policies of",
  t: "Tenants",
  c: "Callers",
  h: "Health",
  u: "Who is this?",
};

describe("the keyboard", () => {
  keys("a slash goes to the search box, j and k along the rows, Enter opens one", async (page) => {
    await page.keyboard.press("/");
    await focus(page, "q");
    await page.keyboard.type("attributes.team = search");
    await page.keyboard.press("Enter");
    await heading(page, "Results");
    const rows = page.getByRole("region", { name: "Users" }).getByRole("rowheader");
    const names = (await rows.allInnerTexts()).map((text) => text.trim());
    assert.ok(names.length > 2);
    await page.keyboard.press("j");
    await focus(page, names[0]);
    await page.keyboard.press("j");
    await focus(page, names[1]);
    await page.keyboard.press("k");
    await focus(page, names[0]);
    await page.keyboard.press("Enter");
    await heading(page, names[0]);
  });

  keys("a question mark shows the keys, Escape hides them", async (page) => {
    await page.keyboard.press("?");
    const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await dialog.getByText("Next and previous row").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
  });

  keys("keys that are typed into a field are text", async (page) => {
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("?gj/");
    assert.equal(await page.getByRole("searchbox").inputValue(), "?gj/");
    assert.equal(await page.getByRole("dialog").count(), 0);
  });

  keys("letters of another script are those of their keys, and keys of an input method are its own", async (page) => {
    const press = (init) => page.evaluate((init) => document.body.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, ...init })), init);
    await press({ key: "п", code: "KeyG", isComposing: true });
    await press({ key: "ф", code: "KeyA", isComposing: true });
    await press({ key: "п", code: "KeyG" });
    await press({ key: "ф", code: "KeyA" });
    await heading(page, "Audit");
    await page.goto("/console/t/default/bulk");
    await press({ key: "?", code: "Slash", isComposing: true });
    assert.equal(await page.getByRole("dialog").count(), 0);
  });

  keys("single keys can be turned off, and on again", async (page) => {
    const choose = async (name) => {
      await page.getByText("anonymous", { exact: true }).click();
      await page.getByRole("group", { name: "Single-key shortcuts" }).getByRole("button", { name, exact: true }).click();
      await page.locator(name === "Off" ? "html[data-keys=off]" : "html:not([data-keys])").waitFor();
    };
    await choose("Off");
    for (const key of ["?", "g", "a", "/"]) {
      await page.keyboard.press(key);
    }
    assert.equal(await page.getByRole("dialog").count(), 0);
    assert.notEqual(await focused(page), "q");
    assert.match(page.url(), /\/bulk$/);
    await choose("On");
    await page.keyboard.press("/");
    await focus(page, "q");
  });

  keys("the box of the start page has the focus", async (page) => {
    await page.goto("/console/t/default/");
    await focus(page, "q");
  });

  keys("a form can be sent again after Escape has ended its navigation", async (page) => {
    await page.goto("/console/t/default/");
    // The last listener ends each navigation, as Escape does.
    await page.evaluate(() => {
      globalThis.sent = 0;
      addEventListener("submit", (event) => {
        globalThis.sent += event.defaultPrevented ? 0 : 1;
        event.preventDefault();
      });
    });
    const sent = () => page.evaluate(() => globalThis.sent);
    const send = () => page.getByRole("button", { name: "List all users" }).click();
    await send();
    await send();
    assert.equal(await sent(), 1, "a second click sends nothing");
    await page.keyboard.press("Escape");
    await send();
    assert.equal(await sent(), 2);
  });

  keys("g and a letter open each page of the menu", async (page) => {
    for (const [letter, title] of Object.entries(LETTERS)) {
      await page.keyboard.press("g");
      await page.keyboard.press(letter);
      await heading(page, title);
    }
  });

  keys("Tab goes through all controls in their order, and the focus is visible", async (page) => {
    const order = [];
    for (;;) {
      await page.keyboard.press("Tab");
      const stop = await page.evaluate(() => {
        const element = document.activeElement;
        if (element === document.body) {
          return null;
        }
        const { top, left, width, height } = element.getBoundingClientRect();
        const style = getComputedStyle(element);
        const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
        return { name: element.innerText || element.getAttribute("name"), top, left, width, height, ring };
      });
      if (stop === null) {
        break;
      }
      order.push(stop);
      assert.ok(order.length < 100, "the focus goes round in circles");
    }
    assert.equal(order[0].name, "Skip to the content");
    for (const { name, width, height, ring } of order) {
      assert.ok(ring && width > 0 && height > 0, `the focus on ${name} cannot be seen`);
    }
    const links = await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts();
    const visited = order.map(({ name }) => name.trim());
    const start = visited.indexOf(links[0]);
    assert.deepEqual(visited.slice(start, start + links.length), links);
  });

  keys("the first link skips to the content", async (page) => {
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.id), "content"));
  });
});
