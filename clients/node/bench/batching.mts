// Look-ups by concurrent callers, one by one and in batches: `npm run bench -- [CALLERS] [SECONDS]
// [USERS]`.
import { connect, handle } from "polynym";
import { startServer } from "polynym/testing";

const [callers = 256, seconds = 5, users = 10_000] = process.argv.slice(2).map(Number);

/** Calls a second, and milliseconds for the slowest hundredth. */
async function measure(address: string, batching: boolean) {
  const client = connect(address, { batching, timeoutMs: 10_000 });
  const times: number[] = [];
  const end = performance.now() + seconds * 1_000;
  const caller = async () => {
    while (performance.now() < end) {
      const start = performance.now();
      await client.resolve(handle(`user${Math.floor(Math.random() * users)}`));
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  client.close();
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? NaN).toFixed(1);
  console.log(
    `${batching ? "batching" : "single  "} ${Math.round(times.length / seconds)}/s, ` +
      `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
  );
  return times.length / seconds;
}

const server = await startServer();
const client = connect(server.address, { timeoutMs: 10_000 });
async function* lines() {
  yield { options: {} };
  for (let line = 1; line <= users; line++) {
    yield { line: BigInt(line), user: { identities: [{ identifier: handle(`user${line - 1}`) }] } };
  }
}
for await (const { progress } of client.admin.importUsers(lines()) as AsyncIterable<{
  progress?: unknown;
}>) {
  void progress;
}
client.close();
await measure(server.address, true);
const single = await measure(server.address, false);
const batched = await measure(server.address, true);
console.log(`${(batched / single).toFixed(2)} times as many with batching`);
await server.stop();
