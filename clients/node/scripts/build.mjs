// Makes `src/gen` from the API definition, and `dist` from `src`. npm runs it before it packs the
// package.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

function run(program, ...args) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) {
    throw error ?? new Error(`${args.join(" ")} failed with exit code ${status}`);
  }
}

// Replaces what ts-proto writes wrongly. It fails if a later ts-proto writes something else.
function replaceAll(texts, wrong, right) {
  let count = 0;
  for (const [path, text] of texts) {
    texts.set(
      path,
      text.replaceAll(wrong, (...match) => (count++, right(...match))),
    );
  }
  if (count === 0) {
    throw new Error(`the generated code does not contain ${wrong}`);
  }
}

function mend(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".ts"));
  const texts = new Map(names.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  // Times before 1970 have positive fractions of a second, too.
  replaceAll(
    texts,
    "Math.trunc(date.getTime() / 1_000)",
    () => "Math.floor(date.getTime() / 1_000)",
  );
  replaceAll(
    texts,
    "(date.getTime() % 1_000) * 1_000_000",
    () => "(date.getTime() - Number(seconds) * 1_000) * 1_000_000",
  );
  // An attribute may have any name, even `__proto__`.
  replaceAll(
    texts,
    /(message\.\w+|acc)\[(entry\d+\.key|key)\] = (.+);/g,
    (_, map, key, value) =>
      `Object.defineProperty(${map}, ${key}, ` +
      `{ value: ${value}, configurable: true, enumerable: true, writable: true });`,
  );
  texts.forEach((text, name) => writeFileSync(join(folder, name), text));
}

if (!existsSync(join(root, "node_modules/@bufbuild/buf"))) {
  run(process.env.npm_node_execpath ?? "node", process.env.npm_execpath, "ci", "--ignore-scripts");
}
// A copy without the API definition beside it has the code that was made from it.
if (existsSync(join(root, "../../proto"))) {
  rmSync(join(root, "src/gen"), { recursive: true, force: true });
  run("node", "node_modules/@bufbuild/buf/bin/buf", "generate");
  mend(join(root, "src/gen"));
}
rmSync(join(root, "dist"), { recursive: true, force: true });
run("node", "node_modules/typescript/bin/tsc");
