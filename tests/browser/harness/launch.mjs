// The browser.
import { chromium } from "playwright-core";

/** Starts a browser that connects to nothing by itself. */
export function launch() {
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
