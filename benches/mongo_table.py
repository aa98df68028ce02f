#!/usr/bin/env python3
"""Measures the store on MongoDB and writes docs/benchmarks-mongodb.md with its plots.

    python3 benches/mongo_table.py                1,000,000 users, five rounds: some two hours
    python3 benches/mongo_table.py --quick        few users, two short rounds: whether it works, not how fast

Needs Python 3.9, Cargo, Linux and a quiet machine; a mongod is found or fetched as for the tests. There are two parts,
which can be measured one at a time with --only; what was measured is kept in --data, and the page is written of all that
is there.

- server: `polynym serve` on a replica set of one member, called with `polynym bench`, which checks every answer: one
  wrong or failed answer ends the run. Two servers take turns, one that sends look-ups together and one that does not.
- driver: `cargo bench --bench mongo`, the store beside what one would do without it, in one process.

Where the machine's speed varies, many short rounds tell more than few long ones: --only server --rounds 13 --duration 2.
Loading takes the server a quarter of an hour. --store names a MongoDB that keeps what was loaded, so that the next run
need not; it is used as it is, and must be a replica set of one member with 4 GiB of cache, as the one that is started
otherwise. TMPDIR says where the databases lie; some 6 GB with 1,000,000 users.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mongo_page
from measure import CONCURRENCIES, ROOT, Run, Server, arguments, build, parse, say

PARTS = ("server", "driver")
CACHE = 4  # GiB of cache of the mongod behind the server: everything is in memory


class ReplicaSet:
    """A replica set of one member, in a temporary folder: the one that the tests use."""

    def __init__(self, options):
        command = ["cargo", "bench", "--profile", options.profile, "--bench", "cluster", "--", "--members", "1"]
        command += ["--cache", str(CACHE), "--database", "benchmarks"]
        # A group of its own: Cargo does not pass on the signal that ends it.
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
        ready = next((line for line in self.process.stdout if line.startswith("ready ")), None)
        if not ready:
            sys.exit("no replica set: see above")
        self.store = ready.split()[1]

    def __enter__(self):
        return self.store

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()


def measure_server(options, polynym):
    """Figures of calls to the server."""
    mongod = contextlib.nullcontext(options.store) if options.store else ReplicaSet(options)
    with tempfile.TemporaryDirectory(prefix="polynym-benchmarks-") as folder, mongod as store:
        run = Run(options, folder, polynym, store)
        subprocess.run([polynym, "store", "init", "--store", run.store], check=True, stdout=sys.stderr)
        flags = ("--hints", "0")  # the comparison is of two reads
        with Server(run, *flags, "--coalesce", "on") as on, Server(run, *flags, "--coalesce", "off") as off:
            load(run, on)
            # What a write leaves to be done later must not be paid for by the look-ups of the next round.
            for round_number in range(options.rounds):
                say(f"server, look-ups, round {round_number + 1}")
                measure_reads(run, on, off, backwards=round_number % 2)
            for round_number in range(options.rounds):
                say(f"server, writes, round {round_number + 1}")
                measure_writes(run, on)
    return run


def load(run, server):
    say(f"loading {run.options.users:,} users")
    start = time.monotonic()
    run.warm(server)
    if not run.options.store:
        run.note("load", time.monotonic() - start)


def measure_reads(run, on, off, backwards):
    """Every second round goes backwards: what follows something lighter would always have the worse place."""
    turns = [(on, "no-op", "health"), (on, "coalesced", "resolve"), (off, "two finds", "resolve"), (on, "batch", "batch")]
    for concurrency in CONCURRENCIES:
        for server, name, mode in reversed(turns) if backwards else turns:
            run.measure(server, name, mode, concurrency)


def measure_writes(run, on):
    for concurrency in mongo_page.WRITERS:
        for mode in ("create", "link"):
            run.measure(on, mode, mode, concurrency)


def measure_driver(options, path):
    """Has the program write figures of what happens below the server: of all, or of some beside those that are kept."""
    kept = json.loads(path.read_text()) if options.comparisons else None
    command = ["cargo", "bench", "--profile", options.profile, "--bench", "mongo", "--", "--json", path]
    command += ["--users", options.users, "--rounds", options.rounds, "--duration", options.driver_duration]
    command += ["--quick"] if options.quick else []
    command += ["--only", options.comparisons] if options.comparisons else []
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True, stdout=sys.stderr)
    if kept:
        path.write_text(json.dumps(merged(kept, json.loads(path.read_text()))))


def merged(kept, measured):
    """What is kept, with the rates of the comparisons that were measured again in place of theirs."""
    again = {rate["comparison"] for rate in measured["rates"]}
    others = [rate for rate in kept["rates"] if rate["comparison"] not in again]
    return {**kept, "rates": others + measured["rates"]}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--driver-duration", type=float, default=3, help="seconds of one measurement without a server")
    parser.add_argument("--store", metavar="URI", help="a MongoDB for the server's part, such as mongodb://127.0.0.1/bench")
    parser.add_argument("--only", choices=PARTS, help="measure this part, and take the other from what is kept")
    some = "of the driver's part only these, with commas: lookup, scatter, writes"
    parser.add_argument("--comparisons", metavar="NAMES", help=some)
    parser.add_argument("--data", type=Path, default=ROOT / "target" / "benchmarks-mongodb", help="where figures are kept")
    options = parse(parser, quick_users=2_000)
    polynym = build(options.profile)
    options.data.mkdir(parents=True, exist_ok=True)
    paths = {part: (options.data / f"{part}.json").resolve() for part in PARTS}
    if options.only != "driver":
        save(measure_server(options, polynym), paths["server"])
    if options.only != "server":
        measure_driver(options, paths["driver"])
    missing = [str(path) for path in paths.values() if not path.exists()]
    if missing:
        sys.exit(f"measured; for the page, {' and '.join(missing)} has yet to be measured")
    server, driver = (json.loads(path.read_text()) for path in paths.values())
    mongo_page.write(options, polynym, server, driver)
    say(f"wrote {options.out / 'benchmarks-mongodb.md'}")


def save(run, path):
    options = run.options
    told = {name: getattr(options, name) for name in ("users", "rounds", "duration", "warmup", "quick")}
    calls = [[name, concurrency, reports] for (name, concurrency), reports in run.calls.items()]
    path.write_text(json.dumps({**told, "cache": CACHE, "calls": calls, "figures": run.figures}))


if __name__ == "__main__":
    main()
