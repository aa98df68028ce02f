// The page of clients/web, served by another program than the server: it looks users up by gRPC-Web.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { describe, test } from "node:test";
import { browser } from "../harness/shared.mjs";
import { startServer } from "../harness/server.mjs";

const FOLDER = new URL("../../../clients/web/", import.meta.url);
const TYPES = { ".html": "text/html", ".js": "text/javascript" };

/** Serves the files of a folder. */
async function serveFiles(folder) {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://localhost").pathname.slice(1) || "index.html";
    try {
      const content = await readFile(new URL(path, folder));
      response.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream").end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

describe("gRPC-Web", () => {
  test("a page of another origin looks users up", async () => {
    const files = await serveFiles(FOLDER);
    const server = await startServer("--sample", "--http-allow-origin", files.origin);
    const page = await (await browser()).newPage();
    try {
      await page.goto(`${files.origin}/?server=${server.origin}`);
      const answers = async (handle, text) => {
        await page.getByLabel("Handle").fill(handle);
        await page.getByRole("button").click();
        await page.getByText(text).waitFor();
      };
      await answers("joe", "Joe Smith");
      await answers("nobody", "nobody owns this identifier");
      assert.equal(await page.locator("output").textContent(), "nobody owns this identifier");
    } finally {
      await page.close();
      await server.stop();
      files.close();
    }
  });
});
