#!/usr/bin/env python3
"""Measures the embedded store behind the server and writes docs/benchmarks.md with its plots.

    python3 benches/table.py                      1,000,000 users, five rounds: some 25 minutes
    python3 benches/table.py --quick              20,000 users, two short rounds: whether it works, not how fast

Needs Python 3.9, Cargo, Linux and a quiet machine. It builds the release binary, starts servers in a temporary folder
(TMPDIR says where; some 3 GB with 1,000,000 users) and calls them with `polynym bench`, which checks every answer: one
wrong or failed answer ends the run. What is compared takes turns within a round, and the median of the rounds counts.
"""

import re
import subprocess
import tempfile
import time
from pathlib import Path

from embedded_page import DEFAULT_CACHE, MODES, SMALL_CACHE, write
from measure import CONCURRENCIES, ROOT, Run, Server, arguments, build, parse, say


class Embedded(Run):
    """A run on a store in a folder of its own."""

    def __init__(self, options, folder, polynym):
        self.folder = Path(folder) / "store"
        super().__init__(options, folder, polynym, f"embedded:{self.folder}")

    def disk_mib(self):
        return sum(file.stat().st_blocks * 512 for file in self.folder.iterdir()) / 2**20


def load(run):
    say(f"loading {run.options.users:,} users")
    start = time.monotonic()
    with Server(run, "--cache", f"{run.options.cache}MiB") as server:
        run.warm(server)
    run.note("load", time.monotonic() - start)


def measure_reads(run):
    with Server(run, "--cache", f"{run.options.cache}MiB") as server:
        run.warm(server)
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
            run.warm(server)
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
    """Nanoseconds an id, from `cargo bench -p locality-uuid`: (generator, threads) to the median."""
    say("ids")
    command = ["cargo", "bench", "--package", "locality-uuid", "--bench", "locality"]
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


def main():
    parser = arguments(__doc__)
    parser.add_argument("--cache", type=int, default=1536, help="MiB of cache of the store")
    options = parse(parser, quick_users=20_000)
    polynym = build(options.profile)
    with tempfile.TemporaryDirectory(prefix="polynym-benchmarks-") as folder:
        run = Embedded(options, folder, polynym)
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
