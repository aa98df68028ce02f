// A provider of OpenID Connect on this machine, with a page at which one signs in by a button.
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

const base64 = (value) => Buffer.from(value).toString("base64url");

const page = (address) => `<!doctype html><html lang="en"><title>Example SSO</title><h1>Example SSO</h1>
<p><a href="${address.replaceAll("&", "&amp;")}">I am Ann</a></p></html>`;

/** Starts a provider that knows Ann, of these groups. */
export async function startProvider(groups) {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const codes = new Map();
  const provider = { origin: "", signedOut: 0 };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, provider.origin);
    const json = (value) => response.setHeader("content-type", "application/json").end(JSON.stringify(value));
    if (url.pathname === "/.well-known/openid-configuration") {
      json(metadata(provider.origin));
    } else if (url.pathname === "/keys") {
      json({ keys: [{ ...publicKey.export({ format: "jwk" }), use: "sig", kid: "first" }] });
    } else if (url.pathname === "/authorize") {
      const code = randomUUID();
      codes.set(code, url.searchParams);
      const back = new URL(url.searchParams.get("redirect_uri"));
      back.searchParams.set("code", code);
      back.searchParams.set("state", url.searchParams.get("state"));
      response.setHeader("content-type", "text/html").end(page(back.href));
    } else if (url.pathname === "/token") {
      const fields = new URLSearchParams((await request.toArray()).join(""));
      const asked = codes.get(fields.get("code"));
      codes.delete(fields.get("code"));
      const hash = createHash("sha256").update(fields.get("code_verifier")).digest("base64url");
      if (asked?.get("code_challenge") !== hash) {
        response.statusCode = 400;
        json({ error: "invalid_grant" });
        return;
      }
      json({ access_token: "none", token_type: "Bearer", id_token: token(asked.get("nonce")) });
    } else if (url.pathname === "/end") {
      provider.signedOut += 1;
      response.writeHead(302, { location: url.searchParams.get("post_logout_redirect_uri") }).end();
    } else {
      response.writeHead(204).end();
    }
  });

  function token(nonce) {
    const now = Math.floor(Date.now() / 1000);
    const ann = { sub: "1", email: "ann@example.org", email_verified: true, groups };
    const claims = { iss: provider.origin, aud: "polynym", iat: now, exp: now + 600, nonce, ...ann };
    const text = [{ alg: "RS256", kid: "first" }, claims].map((part) => base64(JSON.stringify(part))).join(".");
    return `${text}.${sign("sha256", Buffer.from(text), privateKey).toString("base64url")}`;
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  provider.origin = `http://127.0.0.1:${server.address().port}`;
  provider.stop = () => server.close();
  return provider;
}

function metadata(origin) {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    jwks_uri: `${origin}/keys`,
    end_session_endpoint: `${origin}/end`,
    response_types_supported: ["code"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
  };
}
