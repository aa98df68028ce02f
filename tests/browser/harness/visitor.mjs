// A client of pages without a browser: it keeps cookies, follows nothing, and sends what a test tells it to.
import assert from "node:assert/strict";
import http from "node:http";
import { randomUUID } from "node:crypto";
import { guardedServer } from "./shared.mjs";

/** Sends one request on a connection of its own, and returns its response with the body as text. */
export function request(origin, method, path, { headers = {}, body = "" } = {}) {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(origin);
    const sent = http.request({ agent: false, hostname, port, method, path, headers, timeout: 30_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
      response.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error(`${method} ${path}: no response in 30 s`)));
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Somebody with a cookie. */
export class Visitor {
  cookies = new Map();

  constructor(origin) {
    this.origin = origin;
  }

  async send(method, path, { headers = {}, form } = {}) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const body = form === undefined ? "" : new URLSearchParams(form).toString();
    const response = await request(this.origin, method, path, {
      headers: {
        ...(cookie && { cookie }),
        ...(form !== undefined && {
          "content-type": "application/x-www-form-urlencoded",
          "content-length": Buffer.byteLength(body),
        }),
        ...headers,
      },
      body,
    });
    for (const line of response.headers["set-cookie"] ?? []) {
      const [pair, ...attributes] = line.split(";").map((part) => part.trim());
      const [name, value] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      if (attributes.some((text) => /^max-age=0$/i.test(text)) || value === "") {
        this.cookies.delete(name);
      } else {
        this.cookies.set(name, value);
      }
    }
    return response;
  }

  get(path, headers) {
    return this.send("GET", path, { headers });
  }

  /** Posts a form as a page of the console does. */
  post(path, form, headers) {
    return this.send("POST", path, { form, headers: { origin: this.origin, "sec-fetch-site": "same-origin", ...headers } });
  }
}

/** Somebody who is signed in with a token. */
export async function signedIn(server, token) {
  const visitor = new Visitor(server.origin);
  assert.equal((await visitor.post("/console/sign-in", { token })).status, 303);
  assert.ok(visitor.cookies.has("polynym_session"), "no cookie");
  return visitor;
}

/** Somebody who is signed in to the server with credentials, and that server. */
export async function signedInAs(role) {
  const server = await guardedServer();
  return { server, visitor: await signedIn(server, server.credentials.tokens[role]) };
}

/** The fields that each form of a mutation has. */
export function mutation(etag, fields = {}) {
  return { etag, request_id: randomUUID(), ...fields };
}
