"""Writes docs/benchmarks.md and its plots from what benches/table.py measured."""

import statistics
import sys
from pathlib import Path

import pages
import plot
from pages import CAUTION, by_concurrency, locked, number, table
from measure import CONCURRENCIES

MODES = ("health", "resolve", "batch")
SMALL_CACHE, DEFAULT_CACHE = 16, 256  # MiB


def goals(run):
    """Rows of the table of goals: what, floor, goal, measured figures of the rounds, whether less is better."""
    at_64 = ("resolve", 64), ("health", 64)
    batches = run.ratios(("batch", 16), ("health", 16), "identifiers_per_second", "calls_per_second")
    creates_at_64 = run.ratios(("create, grouped on", 64), ("create, grouped off", 64))
    rows = [
        ("resolve / no-op calls a second, at 64", 0.70, 0.85, run.ratios(*at_64), False),
        ("resolve / no-op p99, at 64", 1.3, None, run.ratios(*at_64, field="p99_us"), True),
        ("identifiers in batches of 100 / no-op calls, at 16", 3.5, 6, batches, False),
        ("durable creates, grouped / one a sync, at 64", 3.5, 10, creates_at_64, False),
    ]
    for end in ("clean", "killed"):
        what = "a clean end" if end == "clean" else "kill -9 while writing"
        figures = run.figures[f"answered, {end}"]
        rows.append((f"seconds from start to a first answer, after {what}", 1, None, figures, True))
    for cache in sorted({SMALL_CACHE, DEFAULT_CACHE, run.options.cache}):
        figures = run.figures[f"memory apart from {cache}"]
        rows.append((f"resident MiB apart from the cache, which may take {cache}", 150, None, figures, True))
    for threads, floor in ((1, 0.60), (2, 0.50)):
        if f"uuid_v7 {threads}" in run.figures:
            ratio = run.figures[f"locality_variable {threads}"][0] / run.figures[f"uuid_v7 {threads}"][0]
            rows.append((f"time of an id / of one of `uuid` v7, threads: {threads}", floor, 0.40, [ratio], True))
    return rows


def machine(run):
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [mount for mount in mounts if run.folder.is_relative_to(mount[0])]
    file_system = max(holding, key=lambda mount: len(mount[0]))[1]
    return pages.machine(run.polynym, "client and server", [f"redb {locked('redb')}, the store on {file_system}"])


def caches(run):
    rows = []
    for cache in (SMALL_CACHE, DEFAULT_CACHE):
        names = f"resolve, {cache} MiB", f"health, {cache} MiB"
        ratio = statistics.median(run.ratios((names[0], 64), (names[1], 64)))
        rows.append([f"{cache} MiB", number(run.median(names[0], 64)), number(ratio)])
    cache = run.options.cache
    ratio = statistics.median(run.ratios(("resolve", 64), ("health", 64)))
    rows.append([f"{cache} MiB", number(run.median("resolve", 64)), number(ratio)])
    for row, cache in zip(rows, (SMALL_CACHE, DEFAULT_CACHE, cache)):
        row.append(number(run.figures[f"memory {cache}"][0]))
    return table(["cache", "resolve calls/s at 64", "of the no-op", "resident MiB"], rows)


PAGE = """# Benchmarks of the embedded store

Written by `python3 benches/table.py{arguments}`; nothing here is typed by hand.

{machine}

{users:,} users of three identities each, loaded through the API in {load:.0f} s into {size:.0f} MiB on disk. Each
figure is the median of {rounds} rounds in which what is compared took turns, {duration:g} s each after {warmup:g} s of
warming up; in brackets the lowest and the highest round. The client, `polynym bench`, is a process of its own on the
same machine, uses four connections, picks users at random and checks every answer: none was wrong, none failed. The
no-op call is `grpc.health.v1.Health/Check` on the same server in the same round. The cache of the store may take
{cache} MiB where nothing else is said.{caution}

## Goals

{goals}

## Throughput

Calls a second; for batches of 100, identifiers a second.

{throughput}

![throughput against concurrency](benchmarks-throughput.svg)

## Latency

Microseconds.

{latency}

![99th percentile against concurrency](benchmarks-p99.svg)

## Durable creates

Users a second, each on disk before its answer. Grouped is how the server runs unless told otherwise; one a sync is
`serve --group-commit off`. Both write to the store of {users:,} users and more.

{creates}

## Memory

The pages of the store that are not in its cache come from the kernel's. Resident is VmRSS after the calls, with the
cache in it; for the goals, as much is taken off as the cache may take, or as it can: the store's size and a quarter, and
an eighth of the cache for guesses.

{caches}

## Start

Seconds from the start of the process, with {users:,} users and more, the file in the kernel's memory. The first answer
is that of `polynym resolve`, whose own start is counted. The server was killed while it made users at concurrency 64.

{starts}
{ids}
## Not measured here

- MongoDB, its coalesced reads and the cache of answers: they are not part of the embedded store.
- Attributes and searches: [benchmarks-search.md](benchmarks-search.md).
- PostgreSQL, OpenLDAP and Redis behind the same call.
- A power cut: a kill leaves what the kernel has been given.

[A decision](decisions/0001-embedded-store.md) compares redb with other stores.
"""


def page(run, size):
    options = run.options
    latencies = [(f"{name}, {q}", name, f"{q}_us") for name in MODES for q in ("p50", "p99", "p999")]
    fields = {"health": "calls_per_second", "resolve": "calls_per_second", "batch": "identifiers_per_second"}
    return PAGE.format(
        arguments="".join(f" {argument}" for argument in sys.argv[1:]),
        machine=machine(run),
        users=options.users,
        rounds=options.rounds,
        duration=options.duration,
        warmup=options.warmup,
        cache=options.cache,
        caution=CAUTION if options.quick else "",
        load=run.figures["load"][0],
        size=size,
        goals=pages.goals(goals(run)),
        throughput=by_concurrency(run, [(name, name, fields[name]) for name in MODES]),
        latency=by_concurrency(run, latencies),
        creates=creates(run),
        caches=caches(run),
        starts=starts(run),
        ids=ids(run),
    )


def creates(run):
    on, off = "create, grouped on", "create, grouped off"
    ratios = [number(statistics.median(run.ratios((on, c), (off, c)))) for c in CONCURRENCIES]
    rates = by_concurrency(run, [("grouped", on, "calls_per_second"), ("one a sync", off, "calls_per_second")])
    return f"{rates}\n| ratio | {' | '.join(ratios)} |"


def starts(run):
    rows = []
    for title, end in (("after a clean end", "clean"), ("after kill -9", "killed")):
        figures = [run.figures[f"{what}, {end}"] for what in ("listening", "answered")]
        rows.append([title, *(number(statistics.median(seconds)) for seconds in figures)])
    return table(["", "listening", "first answer"], rows)


def ids(run):
    """Nanoseconds an id, where they were measured."""
    names = ("locality_variable", "uuid_v7")
    if "uuid_v7 1" not in run.figures:
        return ""
    rows = [[name, *(number(run.figures[f"{name} {threads}"][0]) for threads in (1, 2))] for name in names]
    head = "## Ids\n\nNanoseconds an id (`cargo bench -p locality-uuid`)."
    return f"\n{head}\n\n{table(['', 'one thread', 'two'], rows)}\n"


def plots(run, folder):
    fields = (
        ("no-op calls", "health", "calls_per_second"),
        ("resolves", "resolve", "calls_per_second"),
        ("identifiers in batches", "batch", "identifiers_per_second"),
    )
    lines = [(title, [run.median(name, c, field) for c in CONCURRENCIES]) for title, name, field in fields]
    plot.write(folder / "benchmarks-throughput.svg", "per second", CONCURRENCIES, lines)
    fields = (("no-op call", "health"), ("resolve", "resolve"), ("batch of 100", "batch"))
    lines = [(title, [run.median(name, c, "p99_us") for c in CONCURRENCIES]) for title, name in fields]
    plot.write(folder / "benchmarks-p99.svg", "99th percentile, microseconds", CONCURRENCIES, lines)


def write(run, size):
    """Writes the page and the plots; `size` is that of the loaded store in MiB."""
    folder = run.options.out
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.md").write_text(page(run, size))
    plots(run, folder)
