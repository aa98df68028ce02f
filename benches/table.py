#!/usr/bin/env python3
"""Measures the embedded store behind the server and writes docs/benchmarks.md with its plots.

    python3 benches/table.py                      1,000,000 users, five rounds: some 25 minutes
    python3 benches/table.py --quick              20,000 users, two short rounds: whether it works, not how fast

Needs Python 3.9, Cargo, Linux and a quiet machine. It builds the release binary, starts servers in a temporary folder
(TMPDIR says where; some 3 GB with 1,000,000 users) and calls them with `polynym bench`, which checks every answer: one
wrong or failed answer ends the run. What is compared takes turns within a round, and the median of the rounds counts.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from page import CONCURRENCIES, DEFAULT_CACHE, MODES, ROOT, SMALL_CACHE, write

KNOWN = "email:ada.allen.0@example.com"  # the first user that `polynym bench` loads


class Server:
    """`polynym serve` on a store, with the time it took to listen and to answer a first look-up, in seconds."""

    def __init__(self, run, *flags, known=False):
        command = [run.polynym, "serve", "--listen", "127.0.0.1:0", "--store", f"embedded:{run.store}", *flags]
        start = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=run.log, text=True)
        line = self.process.stdout.readline()
        self.listening = time.monotonic() - start
        found = re.match(r"listening on (http://\S+)", line)
        if not found:
            self.stop()
            sys.exit(f"the server did not start; its log:\n{run.read_log()}")
        self.address = found[1]
        if known:
            look_up = [run.polynym, "resolve", "--server", self.address, KNOWN]
            subprocess.run(look_up, check=True, stdout=subprocess.DEVNULL)
        self.answered = time.monotonic() - start

    def memory_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024

    def stop(self, kill=False):
        """Asks the server to stop, or kills it; waits until it is gone."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Run:
    """Where this run keeps its things, and what it has measured: lists of one figure a round."""

    def __init__(self, options, folder, polynym):
        self.options, self.polynym = options, polynym
        self.store = Path(folder) / "store"
        self.log = open(Path(folder) / "server.log", "w+")
        self.calls = {}  # (what, concurrency) to the reports of `polynym bench`
        self.figures = {}

    def read_log(self):
        self.log.seek(0)
        return self.log.read()[-4000:]

    def note(self, name, figure):
        self.figures.setdefault(name, []).append(figure)

    def disk_mib(self):
        return sum(file.stat().st_blocks * 512 for file in self.store.iterdir()) / 2**20

    def bench_command(self, server, mode, concurrency, duration=None, warmup=None):
        options = self.options
        flags = {
            "--server": server.address,
            "--concurrency": concurrency,
            "--duration": duration or options.duration,
            "--warmup": options.warmup if warmup is None else warmup,
            "--users": options.users,
            "--batch": 100,
        }
        return [self.polynym, "bench", mode, "--json", *(str(part) for flag in flags.items() for part in flag)]

    def bench(self, server, mode, concurrency, **times):
        command = self.bench_command(server, mode, concurrency, **times)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        report = json.loads(done.stdout) if done.returncode == 0 else {}
        if not report or report["errors"] or report["wrong"]:
            sys.exit(f"{' '.join(command)} failed: {report}; the server's log:\n{self.read_log()}")
        return report

    def measure(self, server, name, mode, concurrency):
        report = self.bench(server, mode, concurrency)
        self.calls.setdefault((name, concurrency), []).append(report)
        say(f"  {name:24} at {concurrency:3}: {report['calls_per_second']:10,.0f} /s, p99 {report['p99_us']:8,.0f} us")
        return report

    def median(self, name, concurrency, field="calls_per_second"):
        return statistics.median(report[field] for report in self.calls[name, concurrency])

    def ratios(self, over, under, field="calls_per_second", under_field=None):
        """The ratio of two measurements in each round; each is a name and a concurrency."""
        pairs = zip(self.calls[over], self.calls[under])
        return [a[field] / b[under_field or field] for a, b in pairs]


def say(text):
    print(text, file=sys.stderr, flush=True)


def load(run):
    say(f"loading {run.options.users:,} users")
    start = time.monotonic()
    with Server(run, "--cache", f"{run.options.cache}MiB") as server:
        run.bench(server, "resolve", 1, duration=1, warmup=0)
    run.note("load", time.monotonic() - start)


def measure_reads(run):
    with Server(run, "--cache", f"{run.options.cache}MiB") as server:
        for round_number in range(run.options.rounds):
            say(f"reads, round {round_number + 1}")
            for concurrency in CONCURRENCIES:
                for mode in MODES:
                    run.measure(server, mode, mode, concurrency)
        note_memory(run, server, run.options.cache)


def measure_caches(run):
    """Memory and speed with less cache than the store has pages."""
    for cache in (SMALL_CACHE, DEFAULT_CACHE):
        with Server(run, "--cache", f"{cache}MiB") as server:
            for _ in range(run.options.rounds):
                for mode in ("health", "resolve"):
                    run.measure(server, f"{mode}, {cache} MiB", mode, 64)
            note_memory(run, server, cache)


def note_memory(run, server, cache):
    memory = server.memory_mib()
    run.note(f"memory {cache}", memory)
    # What the cache holds at most: pages, a quarter larger in memory than on disk, and guesses in an eighth of it.
    run.note(f"memory apart from {cache}", max(0, memory - min(cache, run.disk_mib() * 1.25 + cache / 8)))


def measure_creates(run):
    for round_number in range(run.options.rounds):
        say(f"creates, round {round_number + 1}")
        for concurrency in CONCURRENCIES:
            for switch in ("on", "off"):
                flags = ("--cache", f"{run.options.cache}MiB", "--group-commit", switch)
                with Server(run, *flags) as server:
                    run.measure(server, f"create, grouped {switch}", "create", concurrency)


def measure_starts(run):
    for _ in range(run.options.rounds):
        with Server(run, known=True) as server:
            run.note("listening, clean", server.listening)
            run.note("answered, clean", server.answered)
            kill_while_writing(run, server)
        with Server(run, known=True) as server:
            run.note("listening, killed", server.listening)
            run.note("answered, killed", server.answered)


def kill_while_writing(run, server):
    command = run.bench_command(server, "create", 64, duration=30, warmup=0)
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        server.stop(kill=True)
    finally:
        client.kill()
        client.wait()


def measure_ids(run):
    """Nanoseconds an id, from `cargo bench --bench locality`: (generator, threads) to the median."""
    say("ids")
    command = ["cargo", "bench", "--bench", "locality"]
    out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    name = None
    for line in out.stdout.splitlines():
        words = re.findall(r"[\w=]+", line)
        if words and not words[0].startswith("t="):
            name = words[0]
        threads = re.search(r"t=(\d+)", line)
        times = re.findall(r"([\d.]+) (ns|µs)", line)
        if threads and len(times) == 4:
            figure, unit = times[2]  # after fastest and slowest comes the median
            run.note(f"{name} {threads[1]}", float(figure) * (1000 if unit == "µs" else 1))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=5, help="seconds of one measurement")
    parser.add_argument("--warmup", type=float, default=1, help="seconds before it")
    parser.add_argument("--cache", type=int, default=1536, help="MiB of cache of the store")
    parser.add_argument("--quick", action="store_true", help="20,000 users, two rounds of a second, no ids")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page and the plots go")
    options = parser.parse_args()
    if options.quick:
        options.users, options.rounds, options.duration, options.warmup = 20_000, 2, 1, 0.5
    return options


def build():
    subprocess.run(["cargo", "build", "--release"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return ROOT / target / "release" / "polynym"


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    polynym = build()
    with tempfile.TemporaryDirectory(prefix="polynym-benchmarks-") as folder:
        run = Run(options, folder, polynym)
        load(run)
        size = run.disk_mib()
        measure_reads(run)
        measure_caches(run)
        measure_creates(run)
        measure_starts(run)
        if not options.quick:
            measure_ids(run)
        write(run, size)
    say(f"wrote {options.out / 'benchmarks.md'}")


if __name__ == "__main__":
    main()
