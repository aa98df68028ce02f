// Takes the pictures of the console: `node pictures.mjs FOLDER`. The same program makes the same pictures, except for
// times and ids.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Api } from "./api.mjs";
import { launch } from "./launch.mjs";
import { startServer } from "./server.mjs";

const MAX_BYTES = 150 << 10;
const [folder] = process.argv.slice(2);

/** The pictures: their names, and the way to each. */
const PICTURES = {
};

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
