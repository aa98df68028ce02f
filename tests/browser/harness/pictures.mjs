// Takes the pictures of the console: `node pictures.mjs FOLDER`. The same program makes the same pictures, except for
// times and ids.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Api } from "./api.mjs";
import { launch } from "./launch.mjs";
import { startServer } from "./server.mjs";
import { heading, paste } from "./steps.mjs";

const MAX_BYTES = 150 << 10;
const HOME = "/console/t/default/";
const [folder] = process.argv.slice(2);

/** A company's list, as spreadsheets save it. */
const CUSTOMERS = `Kundennr.;Vorname;Nachname;E-Mail;Telefon;Ort
0001;Anna;Müller;anna@example.com;030 1234567;Köln
0002;Jörg;Groß;jg@example.com;+43 1 5123456;Wien
0003;Eva;Weiß;eva@example.org, e.weiss@example.org;0171 1234567;Köln
0004;Nora;Falsch;nora@@example.org;;Köln
`;

/** The pictures: their names, and the way to each. */
const PICTURES = {
  async search(page) {
    await page.goto(HOME);
    await page.getByRole("searchbox").fill("(415) 555-2671");
    await page.getByRole("search").getByRole("link", { name: "Joe Smith" }).waitFor();
  },
  async results(page) {
    await page.goto(HOME);
    await paste(page, 'attributes.team = "search" AND state = ACTIVE');
    await heading(page, "Results");
  },
  async user(page, { joe }) {
    await page.goto(`${HOME}users/${joe.userId}`);
    await heading(page, "Joe Smith");
  },
  async merge(page, { joe, double }) {
    await page.goto(`${HOME}users/${joe.userId}/merge/${double.userId}`);
    await heading(page, "Side by side");
  },
  async import(page) {
    await page.goto(`${HOME}import`);
    const buffer = Buffer.from(CUSTOMERS, "latin1");
    await page.getByLabel("File", { exact: true }).setInputFiles({ name: "customers.csv", mimeType: "text/csv", buffer });
    await page.getByRole("button", { name: "Upload" }).click();
    await heading(page, "The first rows, as they are read");
    await page.getByRole("heading", { name: "Columns" }).scrollIntoViewIfNeeded();
  },
  async policies(page) {
    await page.goto(`${HOME}policies`);
    await heading(page, "Policies of default");
  },
};

/** What the pictures show beside the sample users. */
async function prepare(api) {
  const joe = await api.resolve("handle:joe");
  const double = await api.create("Joe E. Smith", ["email:joe.e.smith@example.net", "handle:jesmith"], { team: "ranking", city: "Oslo" });
  return { joe, double };
}

/** Shows times as on a day after the sample's last change, and neither measured times nor new ids. */
function freeze() {
  const now = Date.parse("2026-01-10T00:00:00Z");
  for (const time of document.querySelectorAll("time[datetime]")) {
    const days = Math.floor((now - Date.parse(time.dateTime)) / 86_400_000);
    if (days < 0) {
      time.textContent = /^\d{4}-/.test(time.textContent) ? "2026-01-17 00:00 UTC" : "just now";
    } else if (time.textContent.endsWith("ago")) {
      time.textContent = days === 1 ? "1 day ago" : `${days} days ago`;
    }
  }
  for (const part of document.querySelectorAll("footer span")) {
    part.textContent = part.textContent.replace(/\d+ ms/, "2 ms");
  }
  for (const code of document.querySelectorAll("code")) {
    code.textContent = code.textContent.replace(/[0-9a-f-]{24}01a[0-9a-f]{9}/g, "20be0ffc-314a-bd53-7a50-013a65ca76d2");
  }
}

const server = await startServer("--sample");
const browser = await launch();
try {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const prepared = await prepare(new Api(server.origin, "default"));
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({
      baseURL: server.origin,
      colorScheme,
      viewport: { width: 1280, height: 736 },
      reducedMotion: "reduce",
      locale: "en-US",
      timezoneId: "UTC",
    });
    for (const [name, open] of Object.entries(PICTURES)) {
      const page = await context.newPage();
      await open(page, prepared);
      await page.evaluate(freeze);
      const path = join(folder, `${name}-${colorScheme}.png`);
      await page.screenshot({ path, animations: "disabled" });
      assert.ok(statSync(path).size <= MAX_BYTES, `${path} has ${statSync(path).size} bytes`);
      await page.close();
    }
    await context.close();
  }
} finally {
  await browser.close();
  await server.stop();
}
