#!/usr/bin/env python3
"""Compares ways to keep a day's counters by minute in one document of MongoDB, without Polynym.

    python3 benches/counters.py --mongod mongod             200 counters, three rounds: some minutes
    python3 benches/counters.py --counters 20 --rounds 1    whether it works

- flat: all minutes beside each other, `n.877`; tree: minutes inside hours, `n.14.37`.
- grown: a document begins empty; made: with a zero for each minute, beforehand.

A simulated day: each minute adds 1 to each of the counters, in one command of many updates, w: 1.
The four take turns hour by hour. Prints the updates a second over the hours as a table in Markdown,
the bytes of the documents, and what was written to WiredTiger's log, and draws a plot with --plot.
Needs a mongod 6.0 or later and pymongo.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from pymongo import MongoClient, UpdateOne

import plot
from databases import mongod
from pages import number, table
from people import say

HOURS, MINUTES = range(24), range(60)
FLAT = {str(minute): 0 for minute in range(24 * 60)}
TREE = {str(hour): {str(minute): 0 for minute in MINUTES} for hour in HOURS}
LAYOUTS = {
    "flat, grown": (lambda hour, minute: f"n.{hour * 60 + minute}", {}),
    "flat, made": (lambda hour, minute: f"n.{hour * 60 + minute}", FLAT),
    "tree, grown": (lambda hour, minute: f"n.{hour}.{minute}", {}),
    "tree, made": (lambda hour, minute: f"n.{hour}.{minute}", TREE),
}


def log_bytes(client):
    return client.admin.command("serverStatus")["wiredTiger"]["log"]["log bytes written"]


def day(client, options):
    """Of each layout the updates a second in each hour, the bytes of a document, and the log's for an update."""
    database = client["counters"]
    client.drop_database("counters")
    for name, (_, first) in LAYOUTS.items():
        database[name].insert_many([{"_id": n, "n": first} for n in range(options.counters)])
    rates, logged = ({name: [] for name in LAYOUTS} for _ in range(2))
    for hour in HOURS:
        for name, (path, _) in LAYOUTS.items():
            made = [
                [UpdateOne({"_id": n}, {"$inc": {path(hour, minute): 1}}) for n in range(options.counters)]
                for minute in MINUTES
            ]
            before, start = log_bytes(client), time.perf_counter()
            for updates in made:
                database[name].bulk_write(updates, ordered=False)
            updates = len(MINUTES) * options.counters
            rates[name].append(updates / (time.perf_counter() - start))
            logged[name].append((log_bytes(client) - before) / updates)
        say(f"  hour {hour}: " + ", ".join(f"{name} {own[-1]:,.0f}" for name, own in rates.items()))
    sizes = {name: database.command("collStats", name)["avgObjSize"] for name in LAYOUTS}
    return rates, sizes, logged


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counters", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot", type=Path, help="the file of the plot, such as docs/counters.svg")
    parser.add_argument("--mongod", default=os.environ.get("MONGOD_BIN", "mongod"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="polynym-counters-") as folder:
        with mongod(options.mongod, folder, 1) as port, MongoClient(port=port, w=1) as client:
            rounds = [day(client, options) for _ in range(options.rounds)]
    best = {
        name: [max(rates[name][hour] for rates, _, _ in rounds) for hour in HOURS] for name in LAYOUTS
    }
    _, sizes, logged = rounds[-1]
    shown = [0, 5, 11, 17, 23]
    head = ["layout", *(f"hour {hour}, a second" for hour in shown), "bytes at the end", "bytes of log an update"]
    rows = [
        [name, *(number(best[name][hour]) for hour in shown), number(sizes[name]),
         number(sum(logged[name]) / len(logged[name]))]
        for name in LAYOUTS
    ]
    print("\n" + table(head, rows))
    if options.plot:
        plot.write(options.plot, "updates a second", HOURS, list(best.items()), "hour of the day")
    print("\nload average at the end: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
