// Attacks by hand-made requests: other sites, other hosts, frames, stolen cookies, forged forms.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { guardedServer, openServer } from "../harness/shared.mjs";
import { Visitor, request, signedInAs } from "../harness/visitor.mjs";
import { eventually } from "../harness/visit.mjs";

const HOME = "/console/t/default";
const COOKIE = "polynym_session";

/** Pages of all kinds: good ones, missing ones, and those that lead elsewhere. */
const PATHS = [
  "/console",
  "/console/",
  "/console/sign-in",
  `${HOME}/`,
  `${HOME}/search/1`,
  `${HOME}/users/none`,
  `${HOME}/duplicates`,
  `${HOME}/import`,
  `${HOME}/bulk`,
  `${HOME}/events`,
  `${HOME}/usage`,
  `${HOME}/policies`,
  "/console/tenants",
  "/console/callers",
  "/console/health",
  "/console/nothing",
  "/console/t/%3Cscript%3E/",
];

describe("attacks", () => {
  test("every response is protected against frames, scripts, guesses and caches", async () => {
    const { visitor, server } = await signedInAs("admin");
    const responses = await Promise.all([
      ...PATHS.map(async (path) => [path, await visitor.get(path)]),
      ...PATHS.map(async (path) => [`${path} signed out`, await new Visitor(server.origin).get(path)]),
      ["a refused form", await visitor.post(`${HOME}/search`, { q: "x" }, { origin: "https://evil.example" })],
    ]);
    for (const [path, { headers, status }] of responses) {
      assert.ok(status < 500, `${path}: ${status}`);
      assert.equal(headers["cache-control"], "no-store", path);
      assert.equal(headers["x-content-type-options"], "nosniff", path);
      assert.match(headers["referrer-policy"], /^(no-referrer|same-origin)$/, path);
      assert.equal(headers["x-frame-options"], "DENY", path);
      const policy = headers["content-security-policy"] ?? "";
      for (const part of [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "require-trusted-types-for 'script'",
      ]) {
        assert.ok(policy.includes(part), `${path}: ${policy}`);
      }
      assert.doesNotMatch(policy, /unsafe|https?:|\*/, path);
    }
  });

  test("each response has a nonce of its own", async () => {
    const { visitor } = await signedInAs("viewer");
    const nonces = new Set();
    for (let n = 0; n < 5; n++) {
      const { headers, text } = await visitor.get(`${HOME}/`);
      const [, nonce] = headers["content-security-policy"].match(/script-src 'nonce-([^']{22,})'/);
      assert.ok(text.includes(`nonce="${nonce}"`));
      nonces.add(nonce);
    }
    assert.equal(nonces.size, 5);
  });

  test("the cookie is for this site and for no script", async () => {
    const server = await guardedServer();
    const visitor = new Visitor(server.origin);
    const { headers } = await visitor.post("/console/sign-in", { token: server.credentials.tokens.viewer });
    const [cookie] = headers["set-cookie"];
    assert.match(cookie, /^polynym_session=[\w-]{22};/);
    assert.match(cookie, /; *HttpOnly/i);
    assert.match(cookie, /; *SameSite=Strict/i);
    assert.doesNotMatch(cookie, /; *Domain=/i);
  });

  test("forms of other sites are refused, and change nothing", async () => {
    const { visitor } = await signedInAs("admin");
    for (const headers of [
      { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
      { origin: "https://evil.example", "sec-fetch-site": undefined },
      { origin: "null", "sec-fetch-site": undefined },
      { origin: "null", "sec-fetch-site": "cross-site" },
      { origin: visitor.origin, "sec-fetch-site": "cross-site" },
      { origin: "http://127.0.0.1:1", "sec-fetch-site": "same-site" },
    ]) {
      const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
      for (const path of ["/console/sign-out", "/console/sign-in", "/console/preferences", `${HOME}/search`]) {
        const response = await visitor.send("POST", path, { form: { theme: "dark", token: "x", q: "x" }, headers: sent });
        assert.equal(response.status, 403, `${path} with ${JSON.stringify(headers)}`);
        assert.equal(response.headers["set-cookie"], undefined, path);
      }
    }
    assert.equal((await visitor.get(`${HOME}/`)).status, 200, "the session has ended");
  });

  test("a page of another host that points here is refused (DNS rebinding)", async () => {
    for (const server of [await openServer(), await guardedServer()]) {
      for (const host of ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "0x7f.1.evil"]) {
        for (const path of ["/console/", "/console/sign-in", `${HOME}/`]) {
          const { status, text } = await request(server.origin, "GET", path, { headers: { host } });
          assert.ok([403, 421].includes(status), `${host}${path}: ${status}`);
          assert.doesNotMatch(text, /Polynym<|csrf|<form/, host);
        }
      }
      for (const host of ["localhost:1234", "127.0.0.1", "[::1]:80"]) {
        const { status } = await request(server.origin, "GET", "/console/sign-in", { headers: { host } });
        assert.equal(status, 200, host);
      }
    }
  });

  test("signing in and preferences lead to pages of the console alone", async () => {
    const { visitor, server } = await signedInAs("viewer");
    for (const next of [
      "https://evil.example/",
      "//evil.example/",
      "///evil.example/",
      "/\\evil.example/",
      "\\\\evil.example",
      "/console/../../evil",
      "/console//evil.example",
      "/console@evil.example",
      "/console.evil.example/",
      "javascript:alert(1)",
      "data:text/html,x",
      "/console/\r\nSet-Cookie: polynym_session=x",
      " https://evil.example",
      "\t//evil.example",
    ]) {
      const signIn = await new Visitor(server.origin).post("/console/sign-in", { token: server.credentials.tokens.viewer, next });
      const preference = await visitor.post("/console/preferences", { theme: "dark", next });
      for (const { status, headers } of [signIn, preference]) {
        assert.ok(status < 400, `${next}: ${status}`);
        const target = new URL(headers.location, `${server.origin}/console/sign-in`);
        assert.equal(target.origin, server.origin, next);
        assert.match(target.pathname, /^\/console(\/|$)/, next);
        const names = (headers["set-cookie"] ?? []).map((cookie) => cookie.split("=")[0]);
        assert.ok(names.length <= 1, next);
      }
    }
  });

  test("signing in makes a new session, signing out ends it for everybody who has the cookie", async () => {
    const { visitor, server } = await signedInAs("viewer");
    const first = visitor.cookies.get(COOKIE);
    await visitor.post("/console/sign-in", { token: server.credentials.tokens.viewer });
    const second = visitor.cookies.get(COOKIE);
    assert.notEqual(second, first);
    const thief = new Visitor(server.origin);
    thief.cookies.set(COOKIE, second);
    assert.equal((await thief.get(`${HOME}/`)).status, 200);
    await visitor.post("/console/sign-out", {});
    assert.equal((await thief.get(`${HOME}/`)).headers.location, "/console/sign-in?next=%2Fconsole%2Ft%2Fdefault%2F");
  });

  test("a made-up cookie is nobody", async () => {
    const server = await guardedServer();
    for (const value of ["", "x", "A".repeat(22), "A".repeat(4_000), "%00", "../../etc/passwd"]) {
      const thief = new Visitor(server.origin);
      thief.cookies.set(COOKIE, value);
      const response = await thief.get(`${HOME}/`);
      assert.match(response.headers.location ?? "", /^\/console\/sign-in/, value);
    }
  });

  test("a stolen cookie ends with its token", async () => {
    const server = await guardedServer();
    const token = await server.credentials.add("leaver", "admin");
    const visitor = new Visitor(server.origin);
    // The server reads the file again by itself.
    await eventually(async () => {
      await visitor.post("/console/sign-in", { token });
      assert.equal((await visitor.get(`${HOME}/`)).status, 200);
    });
    await server.credentials.revoke("leaver");
    await eventually(async () => {
      assert.match((await visitor.get(`${HOME}/`)).headers.location ?? "", /^\/console\/sign-in/);
    });
    const form = { etag: "", request_id: "", q: "@joe" };
    assert.equal((await visitor.post(`${HOME}/search`, form)).status, 401);
  });

  test("another session cannot open the searches of this one", async () => {
    const { visitor } = await signedInAs("viewer");
    const { headers } = await visitor.post(`${HOME}/search`, { q: "joe.smith@example.com" });
    assert.equal((await visitor.get(headers.location)).status, 200);
    const { visitor: other } = await signedInAs("resolver");
    const response = await other.get(headers.location);
    assert.equal(response.status, 404);
    assert.doesNotMatch(response.text, /joe\.smith@example/i);
  });

  test("forms that are too large, no forms, or of another method are refused", async () => {
    const { visitor } = await signedInAs("admin");
    try {
      const { status } = await visitor.post(`${HOME}/search`, { q: "x".repeat(2 << 20) });
      assert.ok(status >= 400 && status < 500, `${status}`);
    } catch (error) {
      // The server does not read the rest.
      assert.ok(["EPIPE", "ECONNRESET"].includes(error.code), error);
    }
    for (const method of ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]) {
      const { status } = await visitor.send(method, `${HOME}/search`, { headers: { origin: visitor.origin, "sec-fetch-site": "same-origin" } });
      assert.ok(status >= 400 && status < 500, `${method}: ${status}`);
    }
    assert.equal((await visitor.get(`${HOME}/`)).status, 200);
  });

  test("a form is not changed by a link", async () => {
    const { visitor } = await signedInAs("admin");
    for (const path of ["/console/sign-out", "/console/preferences?theme=dark", `${HOME}/search?q=x`]) {
      const { status } = await visitor.get(path);
      assert.ok([404, 405].includes(status), `${path}: ${status}`);
    }
  });

  test("no page names another origin in a link or a part", async () => {
    const { visitor } = await signedInAs("admin");
    for (const path of PATHS) {
      const { text } = await visitor.get(path);
      assert.doesNotMatch(text, /(?:src|action|href)="(?:https?:)?\/\//, path);
    }
  });

  test("paths that leave the console or decode oddly show no file", async () => {
    const { visitor } = await signedInAs("admin");
    for (const path of [
      "/console/assets/../../etc/passwd",
      "/console/assets/x/..%2f..%2f..%2fetc%2fpasswd",
      "/console/assets/%2e%2e/%2e%2e/etc/passwd",
      "/console/t/..%2f..%2f/",
      "/console/t/default%00/",
      "/console/t/%ff/",
      `${HOME}/users/..%2f..%2fsign-out`,
      `${HOME}/search/18446744073709551616`,
      `${HOME}/search/-1`,
    ]) {
      const { status, text } = await visitor.get(path);
      assert.ok(status < 500, `${path}: ${status}`);
      assert.doesNotMatch(text, /root:/, path);
    }
  });
});
