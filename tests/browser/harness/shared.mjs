// What all tests of a process share: one browser, and one server without credentials and one with. Each starts when a
// test first needs it, and ends after the last test.
import { mkdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after } from "node:test";
import { isFirefox, launch } from "./launch.mjs";
import { Credentials, startServer } from "./server.mjs";

/** The folder of the pages that the tests of this browser have seen, and of the pictures of failures. */
export const BUILD = fileURLToPath(new URL(`../build/${isFirefox ? "firefox" : "chromium"}`, import.meta.url));

rmSync(BUILD, { recursive: true, force: true });
mkdirSync(BUILD, { recursive: true });

const endings = [];

after(async () => {
  await Promise.allSettled(endings.reverse().map((end) => end()));
});

function once(start) {
  let started;
  return () => (started ??= start());
}

export const browser = once(async () => {
  const started = await launch();
  endings.push(() => started.close());
  return started;
});

/** A server with the sample users and without credentials. */
export const openServer = once(async () => {
  const server = await startServer("--sample");
  endings.push(() => server.stop());
  return server;
});

/** A server with a caller of each role: `server.credentials` has their tokens. */
export const guardedServer = once(async () => {
  const credentials = await Credentials.create();
  const server = await startServer("--sample", "--credentials", credentials.file);
  endings.push(() => server.stop(), () => credentials.remove());
  return Object.assign(server, { credentials });
});
