// The browsers: Chromium, or Firefox where `BROWSER` is firefox. Both are those of the system.
import { chromium, firefox } from "playwright-core";

export const isFirefox = process.env.BROWSER === "firefox";

/** Starts a browser that connects to nothing by itself. */
export function launch() {
  return isFirefox ? launchFirefox() : launchChromium();
}

function launchChromium() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-gpu",
      "--disable-quic",
      "--disable-sync",
      "--no-first-run",
    ],
  });
}

/** Firefox by WebDriver BiDi, which has no command for what is a preference here. */
function launchFirefox() {
  return firefox.launch({
    channel: "moz-firefox",
    executablePath: process.env.FIREFOX,
    firefoxUserPrefs: { "ui.prefersReducedMotion": 1 },
  });
}

/** Makes the pages of a context those of a person without scripts. Firefox cannot turn them off: it gets none. */
export async function withoutScripts(context) {
  if (isFirefox) {
    await context.route(/\.js(\?|$)/, (route) => route.fulfill({ contentType: "text/javascript", body: "" }));
  }
}

/** Opens a page. Firefox fails to while it closes the window of another one, and works again a moment later. */
export async function newPage(context) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await context.newPage();
    } catch (error) {
      if (!isFirefox || attempt === 20 || !/getTabBrowser/.test(error.message)) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
