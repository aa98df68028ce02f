// The package as others install it: built without the repository around it, and installed from its
// file.
import assert from "node:assert/strict";
import { type ExecFileOptions, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type TestServer, startServer } from "polynym/testing";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const folder = mkdtempSync(join(tmpdir(), "polynym-"));
const project = join(folder, "project");

let server: TestServer;

before(async () => {
  server = await startServer();
  const copy = join(folder, "copy");
  const left = new Set(["build", "dist", "node_modules"].map((name) => join(root, name)));
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(path) });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  cpSync(join(root, "tests/project"), project, { recursive: true });
  await npm(["pack", "--pack-destination", folder], copy);
  await npm(["install", join(folder, `polynym-${version}.tgz`)], project);
});

after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const run = (program: string, args: string[], options: ExecFileOptions) =>
  promisify(execFile)(program, args, options);

function npm(args: string[], cwd: string) {
  // npm gives its own settings to the scripts that it runs, such as this test.
  const env = Object.entries(process.env).filter(([name]) => !/^npm_(?!config_cache)/.test(name));
  return run("npm", [...args, "--prefer-offline", "--no-audit", "--no-fund"], {
    cwd,
    env: Object.fromEntries(env),
  });
}

test("the package has what it needs, and nothing runs when it is installed", () => {
  const installed = join(project, "node_modules/polynym");
  const files = readdirSync(installed, { recursive: true }).map(String);
  assert(!lstatSync(installed).isSymbolicLink());
  assert(files.every((name) => !lstatSync(join(installed, name)).isSymbolicLink()));
  for (const name of [
    "LICENSE",
    "README.md",
    "dist/index.js",
    "dist/index.mjs",
    "dist/index.d.ts",
    "dist/index.d.mts",
  ]) {
    assert(files.includes(name), name);
  }
  assert(!files.some((name) => /^(src|tests|build)\b/.test(name)));
  const { scripts, ...description } = JSON.parse(
    readFileSync(join(installed, "package.json"), "utf8"),
  );
  for (const name of [
    "preinstall",
    "install",
    "postinstall",
    "prepublish",
    "preprepare",
    "prepare",
    "postprepare",
  ]) {
    assert.equal(scripts[name], undefined, name);
  }
  for (const name of [
    "description",
    "license",
    "author",
    "repository",
    "homepage",
    "keywords",
    "engines",
    "types",
  ]) {
    assert(description[name], name);
  }
});

test("the version and the license are those of the project", () => {
  const [, expected] = /^version = "(.*)"$/m.exec(read("../../Cargo.toml")) ?? [];
  assert.equal(version, expected);
  assert.equal(read("LICENSE"), read("../../LICENSE"));
});

for (const name of ["import.mjs", "require.cjs"]) {
  test(`the package is called by ${name}`, async () => {
    const env = { ...process.env, POLYNYM_SERVER: server.address };
    const { stdout } = await run(process.execPath, [name], { cwd: project, env });
    assert.equal(stdout, `${name} found Joe\n`);
  });
}

test("the types of the package are those of its sources", async () => {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const options = [
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--module",
    "nodenext",
    "--target",
    "es2022",
  ];
  await run(process.execPath, [compiler, ...options, "types.mts", "types.cts"], { cwd: project });
});

test("the example with Express signs users up, and finds them", async (context) => {
  try {
    await npm(["install", "express@5"], project);
  } catch {
    context.skip("Express cannot be installed here");
    return;
  }
  cpSync(join(root, "examples/sign-up.mjs"), join(project, "sign-up.mjs"));
  const env = { ...process.env, POLYNYM_SERVER: server.address, PORT: "0" };
  const app = spawn(process.execPath, ["sign-up.mjs"], {
    cwd: project,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  context.after(() => app.kill());
  const [address] = await once(createInterface(app.stdout), "line");
  const signUp = async (body: object) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${address}/users`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    return { status: response.status, user: (await response.json()) as { name: string } };
  };
  const first = await signUp({ address: "Ann@Example.com", name: "Ann" });
  assert.deepEqual([first.status, first.user.name], [201, "Ann"]);
  assert.deepEqual(await signUp({ address: "ann@example.com" }), { status: 200, user: first.user });
  const found = await fetch(`${address}/users/ann@EXAMPLE.com`);
  assert.deepEqual([found.status, await found.json()], [200, first.user]);
  const missing = await fetch(`${address}/users/nobody@example.com`);
  assert.deepEqual(
    [missing.status, ((await missing.json()) as { reason: string }).reason],
    [404, "IDENTITY_NOT_FOUND"],
  );
  assert.equal((await signUp({ address: "no address" })).status, 400);
});
