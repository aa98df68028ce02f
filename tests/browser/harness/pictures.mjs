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
  async user(page, api) {
    const { userId } = await api.resolve("handle:joe");
    await page.goto(`${HOME}users/${userId}`);
    await heading(page, "Joe Smith");
  },
};

/** Shows ages as on the day after the sample's last change, and no measured times. */
function freeze() {
  const times = [...document.querySelectorAll("time[datetime]")];
  const now = Date.parse("2026-01-10T00:00:00Z");
  for (const time of times.filter((time) => time.textContent.endsWith("days ago"))) {
    const days = Math.floor((now - Date.parse(time.dateTime)) / 86_400_000);
    time.textContent = days === 1 ? "1 day ago" : `${days} days ago`;
  }
  for (const part of document.querySelectorAll("footer span")) {
    part.textContent = part.textContent.replace(/\d+ ms/, "2 ms");
  }
}

const server = await startServer("--sample");
const browser = await launch();
try {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const api = new Api(server.origin, "default");
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({
      baseURL: server.origin,
      colorScheme,
      viewport: { width: 1280, height: 800 },
      reducedMotion: "reduce",
      locale: "en-US",
      timezoneId: "UTC",
    });
    for (const [name, open] of Object.entries(PICTURES)) {
      const page = await context.newPage();
      await open(page, api);
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
