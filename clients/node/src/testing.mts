// The package `polynym/testing` for `import`.
export * from "./testing.js";
