#!/usr/bin/env python3
"""Draws the plots of docs/benchmarks-patterns.md from the tables in the pages of benchmarks.

    python3 benches/patterns.py

So what a page says and what its plot shows are the same. counters.py draws its plot itself.
"""

from measure import ROOT
from plot import bars, write

DOCS = ROOT / "docs"
PATTERNS, SEARCH = "benchmarks-patterns.md", "benchmarks-search.md"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table_with(page, *titles):
    """The first table of a page that has these columns: by the name of a row what is in them."""
    lines = (DOCS / page).read_text().splitlines()
    for at, line in enumerate(lines):
        head = cells(line) if line.startswith("| ") else []
        if all(title in head for title in titles):
            rows = {}
            for row in lines[at + 2:]:
                if not row.startswith("|"):
                    break
                name, *_ = own = cells(row)
                rows[name] = [own[head.index(title)] for title in titles]
            return rows
    raise SystemExit(f"{page} has no table with {', '.join(titles)}")


def panels(names, *tables):
    """Panels for `bars` from tables of one page; a table is the page, and columns with titles."""
    made = []
    for page, columns in tables:
        found = table_with(page, *columns)
        made += [
            (title, [found[name][n] for name in names]) for n, title in enumerate(columns.values())
        ]
    return made


def inboxes():
    sends = {f"to {n}": n for n in (1, 10, 100)}
    found = table_with(PATTERNS, *sends)
    short = lambda name: name.removeprefix("buckets, ")
    figures = lambda row: [float(own.replace(",", "")) for own in row]
    lines = [(short(name), figures(row)) for name, row in found.items()]
    xs = list(sends.values())
    write(DOCS / "benchmarks-inboxes.svg", "sends a second", xs, lines, "recipients")
    names = list(table_with(PATTERNS, "little in memory"))
    reads = {
        "all in memory": "reads a second, all in memory",
        "little in memory": "reads a second, little in memory",
        "µs of the shards": "µs of processor a read, all in memory",
        "little, µs of the shards": "µs of processor a read, little in memory",
    }
    drawn = panels(names, (PATTERNS, reads))
    bars(DOCS / "benchmarks-inboxes-reads.svg", list(map(short, names)), drawn)


def histories():
    names = ["tail", "by number", "fixed", "by day"]
    columns = {
        "events a second": "events written a second",
        "log an event, bytes": "bytes of log an event",
        "50 newest, p50 µs": "the newest 50, p50 in µs",
        "removing half, s": "removing half, in seconds",
    }
    bars(DOCS / "benchmarks-histories.svg", names, panels(names, (PATTERNS, columns)))


def attributes():
    names = ["array, tokens, one index", "20 indexes", "wildcard index"]
    size = {"index in the cache": "bytes of index in the cache, of a user"}
    rates = {
        "inserts a second": "inserts a second",
        "changes of an attribute": "changes of an attribute a second",
        "equality, 10 users, µs": "10 users by equality, µs",
    }
    bars(DOCS / "benchmarks-attributes.svg", names, panels(names, (SEARCH, rates), (SEARCH, size)))


if __name__ == "__main__":
    inboxes()
    histories()
    attributes()
