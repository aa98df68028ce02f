// A browser's visit to a console: it records what must never happen, and fails at its end if something did.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isFirefox, newPage, withoutScripts } from "./launch.mjs";
import { BUILD, browser } from "./shared.mjs";

/** The longest wait for anything. Tests never depend on how fast the machine is. */
export const LIMIT = Number(process.env.LIMIT_MS ?? 30_000);

/** What tests may choose of a visit. */
const DEFAULTS = { scripts: true, theme: "light", width: 1280, height: 800, settings: {}, elsewhere: [] };

/** Opens pages of a server, runs `test` with them, and checks what the browser has reported. */
export async function visit(server, options, test) {
  const { scripts, theme, width, height, settings, elsewhere } = { ...DEFAULTS, ...options };
  const context = await (await browser()).newContext({
    baseURL: server.origin,
    javaScriptEnabled: scripts,
    colorScheme: theme,
    viewport: { width, height },
    reducedMotion: "reduce",
    locale: "en-US",
    timezoneId: "UTC",
    acceptDownloads: true,
    ...settings,
  });
  context.setDefaultTimeout(LIMIT);
  if (!scripts) {
    await withoutScripts(context);
  }
  const faults = watch(context, [server.origin, ...elsewhere]);
  try {
    const page = await newPage(context);
    await test(page, { context, scripts, faults });
  } catch (error) {
    await picture(context, error);
    throw error;
  } finally {
    await context.close();
  }
  assert.deepEqual(faults, []);
}

/** Records errors of scripts, refused content, requests to elsewhere, dialogs and missing parts of pages. */
function watch(context, origins) {
  const faults = [];
  context.on("console", (message) => {
    // A page that is an error is one for its test to expect.
    const isStatus = message.text().startsWith("Failed to load resource: the server responded with a status");
    // Firefox ends the requests of a page that is left, and says so.
    const isLeft = isFirefox && /^htmx: htmx:(error: NetworkError|sse:error: Error in input stream)/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isStatus && !isLeft) {
      faults.push(`console: ${message.text()}`);
    }
  });
  context.on("weberror", (error) => faults.push(`script: ${error.error()}`));
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (!origins.includes(url.origin) && !["blob:", "data:"].includes(url.protocol)) {
      faults.push(`request to another origin: ${url.origin}`);
    }
  });
  context.on("response", (response) => {
    const isPart = !["document", "xhr", "fetch"].includes(response.request().resourceType());
    if (isPart && response.status() >= 400) {
      faults.push(`${response.status()} for ${new URL(response.url()).pathname}`);
    }
  });
  context.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return faults;
}

let pictures = 0;

/** Saves what the pages looked like when a test failed. */
async function picture(context, error) {
  for (const page of context.pages()) {
    const name = join(BUILD, `failure-${++pictures}`);
    try {
      await page.screenshot({ path: `${name}.png`, timeout: 5_000 });
      writeFileSync(`${name}.html`, `<!-- ${page.url()} -->\n${await page.content()}`);
      error.message += `\n(see ${name}.png)`;
    } catch {
      // The page is gone. The test's own error says why.
    }
  }
}

/** Repeats a check until it passes, or the limit is over. */
export async function eventually(check) {
  const end = Date.now() + LIMIT;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
