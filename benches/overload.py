#!/usr/bin/env python3
"""Offers a server more than it can do, and measures what it still does.

The server is held to a quarter of a core, and looks up a hundred names a call: by `cpu.max` of a control group where that can be
written, else by stopping it for three quarters of each 20 ms. The calls come from the other core at a fixed
rate, however many are answered (an open loop), over up to 64 connections of at most 150 calls each.
Then measures a steady caller alone, and beside one that calls at ten times its rate.

Needs `cargo build --release`. `--plot` draws docs/overload-goodput.svg and docs/overload-p99.svg.
"""

import argparse
import asyncio
import os
import signal
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import plot
from access import PROGRAM
from attacks import BATCH, DATA, HEADERS, PREFACE, RESOLVE, SETTINGS, WINDOW, create, field, frame, handle, head, message

PERIOD = 0.02
SHARE = 0.25
# What is offered, as multiples of the best.
FACTORS = (0.5, 1, 2, 3, 4)


class Throttle:
    """Holds a process to a share of one core."""

    def __init__(self, pid):
        os.sched_setaffinity(pid, {0})
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), {0})
        self.pid, self.way = pid, "cpu.max"
        quota, period = int(PERIOD * SHARE * 1e6), int(PERIOD * 1e6)
        try:
            if Path("/sys/fs/cgroup/cgroup.procs").exists():
                group = Path("/sys/fs/cgroup/polynym-overload")
                group.mkdir(exist_ok=True)
                (group / "cpu.max").write_text(f"{quota} {period}")
            else:
                group = Path("/sys/fs/cgroup/cpu/polynym-overload")
                group.mkdir(exist_ok=True)
                (group / "cpu.cfs_period_us").write_text(str(period))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            (group / "cgroup.procs").write_text(str(pid))
        except OSError:
            self.way = "SIGSTOP"
            threading.Thread(target=self.stop_and_go, daemon=True).start()

    def stop_and_go(self):
        try:
            while True:
                os.kill(self.pid, signal.SIGSTOP)
                time.sleep(PERIOD * (1 - SHARE))
                os.kill(self.pid, signal.SIGCONT)
                time.sleep(PERIOD * SHARE)
        except ProcessLookupError:
            pass


class Client(asyncio.Protocol):
    """A connection of HTTP/2 with calls under way."""

    def __init__(self, token):
        self.token, self.stream, self.waiting, self.data = token, -1, {}, b""
        # Streams whose answer has begun.
        self.answered = set()

    def connection_made(self, transport):
        self.transport = transport
        window = frame(WINDOW, 0, 0, struct.pack(">I", (1 << 30)))
        transport.write(PREFACE + frame(SETTINGS, 0, 0) + window)

    def call(self, path, body):
        self.stream += 2
        done = asyncio.get_running_loop().create_future()
        self.waiting[self.stream] = done
        block = head(path, self.token)
        self.transport.write(frame(HEADERS, 4, self.stream, block) + frame(DATA, 1, self.stream, message(body)))
        return done

    def data_received(self, data):
        self.data += data
        while len(self.data) >= 9:
            length = int.from_bytes(self.data[:3], "big")
            if len(self.data) < 9 + length:
                return
            kind, flags = self.data[3], self.data[4]
            stream = int.from_bytes(self.data[5:9], "big")
            self.data = self.data[9 + length:]
            self.note(kind, flags, stream)

    def note(self, kind, flags, stream):
        if kind == SETTINGS and not flags & 1:
            self.transport.write(frame(SETTINGS, 1, 0))
        # An answer has headers, data and trailers; a refusal has headers alone.
        if kind == HEADERS and flags & 1 and stream in self.waiting:
            done = self.waiting.pop(stream)
            is_refused = stream not in self.answered
            self.answered.discard(stream)
            if not done.done():
                done.set_result(not is_refused)
        elif kind == DATA:
            self.answered.add(stream)

    def connection_lost(self, error):
        for done in self.waiting.values():
            if not done.done():
                done.set_result(None)


async def connect(port, token):
    new = lambda: Client(token)
    return (await asyncio.get_running_loop().create_connection(new, "127.0.0.1", port))[1]


ONE = RESOLVE, field(2, handle("joe"))
# A hundred names that nobody has: the generator must be able to offer four times what the server can do.
HUNDRED = BATCH, b"".join(field(2, handle(f"nobody-{n}")) for n in range(100))


async def open_loop(port, token, rate, seconds, what=ONE):
    """Offers `rate` calls a second, however many are answered: the times of those answered, and the refused."""
    clients = [await connect(port, token) for _ in range(max(2, min(64, int(rate / 200))))]
    times, counts = [], {"refused": 0, "lost": 0, "held": 0}
    tasks = set()
    begun = time.perf_counter()
    sent = 0

    async def one(client):
        if len(client.waiting) >= 150:
            counts["held"] += 1
            return
        start = time.perf_counter()
        answered = await client.call(*what)
        if answered:
            times.append(time.perf_counter() - start)
        else:
            counts["refused" if answered is False else "lost"] += 1

    while (now := time.perf_counter() - begun) < seconds:
        due = int(now * rate) - sent
        for n in range(due):
            task = asyncio.ensure_future(one(clients[(sent + n) % len(clients)]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        sent += due
        await asyncio.sleep(0.002)
    await asyncio.wait(tasks, timeout=2) if tasks else None
    for client in clients:
        client.transport.close()
    return times, counts, seconds


def line(offered, times, counts, seconds):
    times = sorted(times)
    pick = lambda share: times[int(share * (len(times) - 1))] * 1e3 if times else float("nan")
    goodput = len(times) / seconds
    print(f"{offered:>9.0f}{goodput:>9.0f}{counts['refused'] / seconds:>9.0f}{counts['held'] / seconds:>9.0f}{pick(0.5):>9.1f}{pick(0.99):>9.1f}", flush=True)
    return goodput, pick(0.99)


def serve(folder, *arguments):
    own = ["serve", "--listen", "127.0.0.1:0", "--sample", "--log", "off", "--threads", "1", *arguments]
    process = subprocess.Popen([PROGRAM, *own], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline().split()[-1].rsplit(":", 1)[1])


def overload(folder, seconds, max_calls):
    token = create(folder, "one", "admin", "*")
    process, port = serve(folder, "--credentials", folder / "c.toml", "--max-calls", str(2 * max_calls))
    rows = []
    try:
        throttle = Throttle(process.pid)
        print(f"a quarter of a core by {throttle.way}; {max_calls} calls of a caller under way at most")
        print(f"{'offered':>9}{'goodput':>9}{'refused':>9}{'unsent':>9}{'p50 ms':>9}{'p99 ms':>9}")
        run = lambda rate: asyncio.run(open_loop(port, token, rate, seconds, HUNDRED))
        best, rate = 0, 250
        while True:
            goodput, p99 = line(rate, *run(rate))
            rows.append((rate, goodput, p99))
            if goodput < 0.9 * rate:
                break
            rate *= 1.5
        best, at_best = max((goodput, p99) for _, goodput, p99 in rows)
        rows = []
        for factor in FACTORS:
            goodput, p99 = line(factor * best, *run(factor * best))
            rows.append((factor * best, goodput, p99))
        print(f"best {best:.0f} a second with a p99 of {at_best:.1f} ms; at 4 times that {goodput / best:.2f} of it, with a p99 {p99 / at_best:.2f} times as long")
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
    return rows


def draw(rows):
    offered, goodput, p99 = zip(*rows)
    docs = Path(__file__).resolve().parent.parent / "docs"
    xs = [f"{factor}x" for factor in FACTORS]
    along = "offered, times the best that the server can do"
    lines = [("offered", offered), ("answered well", goodput)]
    plot.write(docs / "overload-goodput.svg", "calls a second", xs, lines, along)
    plot.write(docs / "overload-p99.svg", "milliseconds", xs, [("p99 of what is answered", p99)], along)


def neighbours(folder, seconds):
    """A steady caller alone, and beside one at ten times its rate."""
    steady = create(folder, "steady", "admin", "*")
    greedy = create(folder, "greedy", "admin", "*")
    file = folder / "c.toml"
    text = file.read_text().split("[[caller]]")
    file.write_text("[[caller]]".join(part + "rate = { calls = 300 }\n" if '"greedy"' in part else part for part in text))
    process, port = serve(folder, "--credentials", file)
    try:
        Throttle(process.pid)

        async def both():
            greed = asyncio.ensure_future(open_loop(port, greedy, 3_000, seconds))
            alone = await open_loop(port, steady, 200, seconds)
            await greed
            return alone

        print(f"\n200 calls a second alone, and beside a caller that makes 3,000 where 300 are allowed\n{'':>36}{'p50 ms':>9}{'p99 ms':>9}")
        p99 = [line(200, *asyncio.run(run))[1] for _ in range(3) for run in (open_loop(port, steady, 200, seconds), both())]
        alone, beside = sorted(p99[::2])[1], sorted(p99[1::2])[1]
        print(f"p99 alone {alone:.1f} ms, beside {beside:.1f} ms: {beside / alone:.2f} times as long (median of three)")
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--max-calls", type=int, default=32, help="calls of the caller under way: half of the server's --max-calls")
    parser.add_argument("--plot", action="store_true", help="draw the figures of the documents")
    options = parser.parse_args()
    os.sched_setaffinity(0, {os.cpu_count() - 1})
    with tempfile.TemporaryDirectory() as folder:
        rows = overload(Path(folder), options.seconds, options.max_calls)
    if options.plot:
        draw(rows)
    with tempfile.TemporaryDirectory() as folder:
        neighbours(Path(folder), options.seconds)


if __name__ == "__main__":
    main()
