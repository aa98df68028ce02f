// Addresses, tokens and TLS.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, mock, test } from "node:test";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { type ConnectOptions, UnavailableError, connect } from "polynym";
import { parseTarget, parseTargets } from "../src/options.js";
import { scripted } from "./scripted.mjs";

function folder(context: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "polynym-"));
  context.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** Sets variables of the environment for a test. */
function setVariables(context: TestContext, variables: Record<string, string>) {
  const before = { ...process.env };
  Object.assign(process.env, variables);
  context.after(() => {
    process.env = before;
  });
}

test("addresses have TLS by their scheme, or beyond this host", () => {
  const targets: [string, string, boolean][] = [
    ["http://127.0.0.1:7171", "dns:127.0.0.1:7171", false],
    ["http://users:80", "dns:users:80", false],
    ["https://users:7171", "dns:users:7171", true],
    ["https://users/", "dns:users:443", true],
    ["localhost:7171", "dns:localhost:7171", false],
    ["127.8.9.1:7171", "dns:127.8.9.1:7171", false],
    ["[::1]:7171", "dns:[::1]:7171", false],
    ["users:7171", "dns:users:7171", true],
    ["10.0.0.1:7171", "dns:10.0.0.1:7171", true],
  ];
  for (const [server, address, tls] of targets) {
    const target = parseTarget(server);
    assert.deepEqual([target.address, target.tls], [address, tls], server);
  }
  for (const server of [
    "",
    "ftp://users:1",
    "http://users:1/path",
    "users?a",
    "a b",
  ]) {
    assert.throws(() => connect(server), /the server must be https:\/\/HOST:PORT/, server);
  }
  const message = "the server must not have user information: pass a token with token";
  for (const server of ["http://joe:secret@users:1", "joe:secret@users:x"]) {
    assert.throws(() => connect(server), { message });
  }
});

test("ports are numbers from 1 to 65535", () => {
  const faults = [
    ["127.0.0.1:port", "port"],
    [":99999", "99999"],
    ["http://users:65536", "65536"],
    ["[::1]:0", "0"],
    ["users:-1", "-1"],
    ["https://users:/", ""],
  ];
  for (const [server, port] of faults) {
    const message = `the port of a server must be a number from 1 to 65535, not "${port}"`;
    assert.throws(() => connect(server), { message });
  }
});

test("what connect does not know is refused", () => {
  const misplaced = { servers: ["http://127.0.0.1:1"] };
  for (const servers of [misplaced, 7171, [7171]]) {
    assert.throws(() => connect(servers as never), /^TypeError: .*: connect\(servers, options\)$/);
  }
  assert.throws(() => connect("http://127.0.0.1:1", { timeout: 1, ...misplaced } as never), {
    message: /^a client has no option timeout: its options are token, tokenFile, .*timeoutMs/,
  });
});

test("several servers have one scheme", () => {
  const names = (servers: string | string[]) => parseTargets(servers).map(({ name }) => name);
  assert.deepEqual(names("https://a:1, https://b"), ["a:1", "b:443"]);
  assert.deepEqual(names(["http://a:1", "http://b:2"]), ["a:1", "b:2"]);
  const mixed = /^the servers must all be https:\/\/, or all http:\/\/$/;
  for (const servers of ["https://a:1,http://b:2", "127.0.0.1:1,b:2"]) {
    assert.throws(() => connect(servers), { message: mixed });
  }
  assert.throws(() => connect([]), { message: "the list of servers is empty" });
  const token = { token: "secret" };
  assert.throws(
    () => connect("http://127.0.0.1:1,http://users:2", token),
    /would be sent to users without encryption/,
  );
});

test("a token is sent without TLS to this host alone, or if that is wanted", async () => {
  for (const server of ["http://users:7171", "http://10.0.0.1:7171", "http://0.0.0.0:7171"]) {
    assert.throws(
      () => connect(server, { token: "secret" }),
      /without encryption: use https:\/\/, or set insecure/,
    );
    connect(server, { token: "secret", insecure: true }).close();
    connect(server).close();
  }
  const server = await scripted(() => ({}));
  const port = new URL(server.address).port;
  // Not a loopback address by its text, but this host.
  const client = connect(`http://0.0.0.0:${port}`, { token: "secret", insecure: true });
  await client.directory.getUser({});
  assert.deepEqual(server.calls[0]?.headers.get("authorization"), ["Bearer secret"]);
  client.close();
  server.stop();
});

test("a token file is read again when it changes, at most once a second", async (context) => {
  const file = join(folder(context), "token");
  const server = await scripted(() => ({}));
  setVariables(context, { POLYNYM_SERVER: server.address, POLYNYM_TOKEN_FILE: file });
  writeFileSync(file, "first\n");
  let now = 0;
  const clock = mock.method(performance, "now", () => now);
  context.after(() => clock.mock.restore());
  const client = connect();
  const tokenAt = async (time: number) => {
    now = time;
    await client.directory.getUser({});
    return server.calls.at(-1)?.headers.get("authorization")[0];
  };
  assert.equal(await tokenAt(0), "Bearer first");
  writeFileSync(file, "second\n");
  utimesSync(file, 1, 1);
  assert.equal(await tokenAt(999), "Bearer first");
  assert.equal(await tokenAt(1_000), "Bearer second");
  rmSync(file);
  assert.equal(await tokenAt(2_000), "Bearer second");
  writeFileSync(file, "");
  assert.equal(await tokenAt(3_000), "Bearer second");
  writeFileSync(file, "third");
  utimesSync(file, 2, 2);
  assert.equal(await tokenAt(4_000), "Bearer third");
  client.close();
  server.stop();
});

test("faulty credentials are refused without showing them", (context) => {
  const faults: [ConnectOptions, RegExp][] = [
    [{ token: "se cret" }, /^the token is empty, or has characters that a header cannot have$/],
    [{ token: "" }, /^the token is empty/],
    [{ tokenFile: join(folder(context), "none") }, /^cannot read the file of tokenFile: ENOENT/],
    [{ token: "a", tokenFile: "b" }, /^give token or tokenFile, not both$/],
    [{ cert: "a" }, /^a client certificate needs both cert and key$/],
    [{ cert: "a", key: "b" }, /^a client certificate needs a server at https:/],
    [{ timeoutMs: 0 }, /^timeoutMs must be greater than zero$/],
    [{ timeoutMs: -1 }, /^timeoutMs must be greater than zero$/],
    [{ firstBackoffMs: 0 }, /^firstBackoffMs must be greater than zero, and maxBackoffMs no less$/],
    [{ retries: 0.5 }, /^retries must be a whole number from 0 on$/],
  ];
  for (const [options, message] of faults) {
    assert.throws(() => connect("http://127.0.0.1:1", options), { message });
  }
  assert.throws(() => connect("https://users:1", { ca: "/nowhere" }), /cannot read the file of ca/);
});

test("a server with TLS is called by its authority and with a certificate", async (context) => {
  const path = folder(context);
  const [cert, key] = [join(path, "cert.pem"), join(path, "key.pem")];
  const subject = [
    "-subj",
    "/CN=localhost",
    "-addext",
    "subjectAltName=DNS:localhost",
    "-days",
    "2",
    "-nodes",
  ];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  });
  const pair = { cert_chain: readFileSync(cert), private_key: readFileSync(key) };
  const server = new Server();
  const names: unknown[] = [];
  const raw = {
    requestSerialize: Buffer.from,
    requestDeserialize: Buffer.from,
    responseSerialize: Buffer.from,
  };
  const getUser = {
    path: "/polynym.v1.DirectoryService/GetUser",
    requestStream: false,
    responseStream: false,
  };
  server.addService(
    { getUser: { ...getUser, ...raw, responseDeserialize: Buffer.from } },
    {
      getUser(call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
        names.push(call.getAuthContext().sslPeerCertificate?.subject.CN);
        answer(null, Buffer.alloc(0));
      },
    },
  );
  const credentials = ServerCredentials.createSsl(pair.cert_chain, [pair], true);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("localhost:0", credentials, (error, port) =>
      error ? reject(error) : resolve(port),
    ),
  );
  const address = `https://localhost:${port}`;
  const stranger = connect(address, { cert, key, retries: 0 });
  await assert.rejects(stranger.directory.getUser({}), UnavailableError);
  setVariables(context, { POLYNYM_CA: cert });
  const client = connect(address, { cert, key, token: "secret" });
  await client.directory.getUser({});
  assert.deepEqual(names, ["localhost"]);
  stranger.close();
  client.close();
  server.forceShutdown();
});
