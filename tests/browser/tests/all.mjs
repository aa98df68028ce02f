// All tests, in one process, so that they share a browser and servers. They wait for pages more than they compute, so
// that several run at once, but for Firefox, where one window has the focus; the last one looks at what the others have
// seen.
import { describe } from "node:test";
import { isFirefox } from "../harness/launch.mjs";

describe("the console", { concurrency: isFirefox ? 1 : 2 }, async () => {
  await import("./sign_in.mjs");
  await import("./provider.mjs");
  await import("./ended.mjs");
  await import("./grpc_web.mjs");
  await import("./search.mjs");
  await import("./identities.mjs");
  await import("./users.mjs");
  await import("./merging.mjs");
  await import("./bulk.mjs");
  await import("./history.mjs");
  await import("./times.mjs");
  await import("./importing.mjs");
  await import("./tenants.mjs");
  await import("./server.mjs");
  await import("./commands.mjs");
  await import("./keyboard.mjs");
  await import("./frame.mjs");
  await import("./appearance.mjs");
  await import("./accessible.mjs");
  await import("./hostile.mjs");
  await import("./attacks.mjs");
  await import("./roles.mjs");
});

await import("./valid.mjs");
