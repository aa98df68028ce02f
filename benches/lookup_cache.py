#!/usr/bin/env python3
"""Measures look-ups on MongoDB that may be answered from the look-up cache, and writes docs/benchmarks-cache.md.

    python3 benches/lookup_cache.py --store mongodb://127.0.0.1:27017/bench

Hits: a few users, all of them in the cache, beside a call that does nothing. Zipf: users by Zipf's law at 0.99, with room
for one user in ten and answers that may be five seconds old, beside the same look-ups without an age and evenly likely
ones. Measurements take turns on one server; `polynym bench` checks every answer.
"""

import statistics
import subprocess
import tempfile

from measure import Run, Server, arguments, build, parse, say

CONCURRENCIES = (1, 16, 64, 256)
ZIPF = ("--zipf", "0.99")
AGE = ("--max-staleness", "5s")
# The bytes of a user with its three names, and the share of the memory that has entries.
USER, ENTRIES = 1_200, 15 / 16


class CacheRun(Run):
    """Adds flags to the calls of `polynym bench`."""

    more = ()

    def bench_command(self, *arguments, **more):
        return [*super().bench_command(*arguments, **more), *self.more]

    def turn(self, server, name, mode, concurrency, *more):
        self.more = more
        self.measure(server, name, mode, concurrency)
        self.more = ()


def measure_hits(run):
    users, run.options.users = run.options.users, 1_000
    with Server(run, "--lookup-cache", "64MiB") as server:
        run.warm(server)
        for _ in range(run.options.rounds):
            for concurrency in CONCURRENCIES:
                run.turn(server, "no-op", "health", concurrency)
                run.turn(server, "hit", "resolve", concurrency, "--max-staleness", "1h")
                run.turn(server, "no cache", "resolve", concurrency)
    run.options.users = users


def measure_zipf(run):
    room = round(run.options.users / 10 * USER / ENTRIES)
    with Server(run, "--lookup-cache", str(max(room, 1 << 20))) as server:
        run.warm(server)
        for _ in range(run.options.rounds):
            for concurrency in CONCURRENCIES:
                run.turn(server, "zipf cached", "resolve", concurrency, *ZIPF, *AGE)
                run.turn(server, "zipf", "resolve", concurrency, *ZIPF)
                run.turn(server, "even cached", "resolve", concurrency, *AGE)
                run.turn(server, "even", "resolve", concurrency)


def page(options, run):
    def rates(name):
        return [f"{run.median(name, n):,.0f}" for n in CONCURRENCIES]

    def ratios(over, under):
        return [f"{statistics.median(run.ratios((over, n), (under, n))):.2f}" for n in CONCURRENCIES]

    rows = [
        ("a call that does nothing", rates("no-op")),
        ("1,000 users, all in the cache", rates("hit")),
        ("the same, without an age", rates("no cache")),
        ("hit / nothing", ratios("hit", "no-op")),
        ("hit / without an age", ratios("hit", "no cache")),
        ("Zipf 0.99, room for 10 %, at most 5 s old", rates("zipf cached")),
        ("Zipf 0.99, without an age", rates("zipf")),
        ("ratio", ratios("zipf cached", "zipf")),
        ("evenly likely, room for 10 %, at most 5 s old", rates("even cached")),
        ("evenly likely, without an age", rates("even")),
        ("ratio", ratios("even cached", "even")),
    ]
    head = "| at once | " + " | ".join(map(str, CONCURRENCIES)) + " |\n| --- |" + " ---: |" * len(CONCURRENCIES)
    table = "\n".join([head, *(f"| {title} | " + " | ".join(figures) + " |" for title, figures in rows)])
    return f"""# Look-ups with the look-up cache

{options.users:,} users of three identities on a replica set of one member; client, server and database on
the same processors. Calls a second, medians of {options.rounds} rounds of {options.duration:g} s in turns, from
`benches/lookup_cache.py`:

{table}
"""


def main():
    parser = arguments(__doc__)
    parser.add_argument("--store", metavar="URI", required=True, help="a database on a replica set; loaded where it is empty")
    options = parse(parser, quick_users=2_000)
    polynym = build(options.profile)
    with tempfile.TemporaryDirectory(prefix="polynym-cache-") as folder:
        run = CacheRun(options, folder, polynym, options.store)
        subprocess.run([polynym, "store", "init", "--store", run.store], check=True)
        measure_hits(run)
        measure_zipf(run)
    (options.out / "benchmarks-cache.md").write_text(page(options, run))
    say(f"wrote {options.out / 'benchmarks-cache.md'}")


if __name__ == "__main__":
    main()
