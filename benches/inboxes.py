#!/usr/bin/env python3
"""Compares ways to keep inboxes on a sharded cluster of MongoDB, without Polynym.

    python3 benches/inboxes.py                       1,000 users, two rounds: some minutes
    python3 benches/inboxes.py --users 200 --sends 0.1 --rounds 1    whether it works

- on read: a document a send with all its recipients, sharded by its sender. Who reads an inbox
  asks all shards for what names them.
- on write: a document a recipient, sharded by recipient and time, with ids of their own.
- on write, in _id: the same, with recipient and time as _id. It needs no second index for order.
- buckets: documents of up to 50 notices, in the form and by the statements of Polynym. A notice is
  pushed to the open bucket of each recipient; a transaction rolls one that is full.
- buckets, one statement: the same documents by other statements.

All have an index by which MongoDB removes what is over age. Each inbox begins with some 200 notices
of 200 bytes. Then 8 threads send to 1, 10 and 100 random recipients a send, and read the newest 50
notices of random users; w: majority, read concern majority. Then the cache of each shard is made
small, and all is read again; and at last one inbox after another, each time after the operating
system has dropped its pages of the data files, so that it comes from the disk. The shapes take
turns; the best of the rounds counts. µs are those of the processor in the shards; the profiler
tells which shards a send and a read have touched.

Starts a cluster of three shards with Cargo, or takes the one of --cluster. Needs Linux and pymongo.
Prints tables in Markdown, which patterns.py draws.
"""

import argparse
import contextlib
import itertools
import os
import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bson.binary import Binary
from pymongo import MongoClient

from databases import SERVERS, cluster, processor_time
from inbox_shapes import PAGE, Buckets, InId, Notice, OneStatement, OnRead, OnWrite
from pages import number, table
from people import say

THREADS = 8
RECIPIENTS, BEFORE = (1, 10, 100), 10
SENDS = {1: 1_500, 10: 500, 100: 150}
PARTS = ["load", "sends", "reads", "shards"]


def at_once(work, items):
    """Calls `work` with each item, in threads: calls a second, and µs of the shards for one."""
    with ThreadPoolExecutor(THREADS) as pool:
        used, start = processor_time(), time.perf_counter()
        for _ in pool.map(work, items):
            pass
        taken = time.perf_counter() - start
    return len(items) / taken, (processor_time() - used) / len(items) * 1e6


def alone(work, items):
    """The median of calls one after another, in µs."""
    times = []
    for item in items:
        start = time.perf_counter()
        work(item)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


class Best(dict):
    """The best of each figure over the rounds."""

    def note(self, name, rate, cost):
        before = self.get(name, (0, float("inf")))
        self[name] = max(rate, before[0]), min(cost, before[1])


def check(shapes, users, pick):
    """All shapes have the same notices, newest first."""
    for user in pick.sample(users, 20):
        expected = shapes[0].ids(user)
        assert len(expected) == PAGE
        for shape in shapes[1:]:
            assert shape.ids(user) == expected, shape.name


def measure_sends(options, shapes, sender, best):
    for recipients in RECIPIENTS:
        notices = sender.notices(int(SENDS[recipients] * options.sends), recipients)
        for shape in shapes:
            made = [(notice, shape.statement(notice)) for notice in notices]
            rate = at_once(lambda pair: shape.send(*pair), made)
            best.note((shape.name, recipients), *rate)
            say(f"  {shape.name:22} to {recipients:3}: {rate[0]:9,.1f} /s, {rate[1]:9,.0f} µs")


def measure_reads(options, shapes, users, pick, best, what):
    read = [pick.choice(users) for _ in range(int(2_000 * options.sends))]
    for shape in shapes:
        rate, cost = at_once(shape.read, read)
        best.note((shape.name, what), rate, cost)
        best.note((shape.name, what, "alone"), 0, alone(shape.read, read[:500]))
        say(f"  {shape.name:22} {what}: {rate:9,.0f} /s, {cost:7,.0f} µs")


def drop_pages(shards):
    """Has the operating system drop its pages of the data files of all shards."""
    for shard, pid in zip(shards, SERVERS):
        shard.admin.command("fsync")
        options = shard.admin.command("getCmdLineOpts")["parsed"]
        # The path may be relative to where the server runs.
        folder = Path(f"/proc/{pid}/cwd") / options["storage"]["dbPath"]
        for path in folder.rglob("*.wt"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bytes_from_disk():
    """The bytes that the servers have read from the disk."""
    stats = [Path(f"/proc/{pid}/io").read_text().split() for pid in SERVERS]
    return sum(int(own[own.index("read_bytes:") + 1]) for own in stats)


def measure_disk(options, shapes, users, shards, pick, best):
    """Of each shape the median of reads from the disk, and the bytes of one."""
    times, read = {shape.name: [] for shape in shapes}, dict.fromkeys((s.name for s in shapes), 0)
    wanted = pick.sample(users, min(len(users), max(10, int(200 * options.sends))))
    for user in wanted:
        for shape in shapes:
            drop_pages(shards)
            before = bytes_from_disk()
            times[shape.name].append(alone(shape.read, [user]))
            read[shape.name] += bytes_from_disk() - before
    for shape in shapes:
        median, size = statistics.median(times[shape.name]), read[shape.name] / len(wanted)
        best.note((shape.name, "disk"), 1e6 / median, median)
        best.note((shape.name, "disk", "bytes"), 0, size)
        say(f"  {shape.name:22} from the disk: {median:9,.0f} µs, {size:9,.0f} bytes")


def touched(shards, call):
    """On how many shards a call reads or writes, and how many statements they get."""
    for shard in shards:
        shard.inboxes.command("profile", 2)
    call()
    statements = []
    for shard in shards:
        shard.inboxes.command("profile", 0)
        done = shard.inboxes["system.profile"].find({"op": {"$in": ["query", "insert", "update"]}})
        statements.append(sum(not own["ns"].endswith("system.profile") for own in done))
        shard.inboxes["system.profile"].drop()
    return sum(made > 0 for made in statements), sum(statements)


def sizes(shards, collection):
    """Bytes of all documents, on the disk, and of the indexes."""
    total = [0, 0, 0]
    for shard in shards:
        shard.admin.command("fsync")
        stats = shard.inboxes.command("collStats", collection)
        for n, name in enumerate(("size", "storageSize", "totalIndexSize")):
            total[n] += stats[name]
    return total


def rows_of(shapes, best, keys, part):
    return [[s.name, *(number(best[s.name, *key][part]) for key in keys)] for s in shapes]


class Sender:
    """Makes notices to random users; later ones are younger."""

    def __init__(self, users, part):
        # Those that are loaded are the same each time; others are new to a cluster that has them.
        self.pick = random.Random(1 if part == "load" else None)
        self.users, self.count = users, PARTS.index(part) << 24

    def notices(self, sends, recipients):
        self.count += sends
        numbers = range(self.count - sends, self.count)
        return [Notice(self.pick, self.users, n, recipients) for n in numbers]


def load(options, client, shapes, users):
    client.drop_database("inboxes")
    client.admin.command("enableSharding", "inboxes")
    names = [row["_id"] for row in client.admin.command("listShards")["shards"]]
    notices = Sender(users, "load").notices(options.users * options.notices // BEFORE, BEFORE)
    for shape in shapes:
        start = time.perf_counter()
        shape.make(names)
        shape.load(notices)
        say(f"  {shape.name} loaded in {time.perf_counter() - start:.0f} s")
    check(shapes, users, random.Random(2))


def run(options, client, shards):
    pick = random.Random(1)
    users = [Binary(pick.randbytes(16), 4) for _ in range(options.users)]
    shapes = [shape(client) for shape in (OnRead, OnWrite, InId, Buckets, OneStatement)]
    if "load" in options.only:
        load(options, client, shapes, users)
        report_sizes(shapes, shards, options.users * options.notices)
    best = Best()
    if "sends" in options.only:
        sender = Sender(users, "sends")
        for _ in range(options.rounds):
            measure_sends(options, shapes, sender, best)
        say("  rolled: " + ", ".join(str(shape.rolled) for shape in shapes[-2:]))
        report_sends(shapes, best)
    if "reads" in options.only:
        for _ in range(options.rounds):
            measure_reads(options, shapes, users, pick, best, "all")
        set_cache(shards, options.cache_mib)
        for _ in range(options.rounds):
            measure_reads(options, shapes, users, pick, best, "little")
        measure_disk(options, shapes, users, shards, pick, best)
        set_cache(shards, 512)
        report_reads(shapes, best)
    if "shards" in options.only:
        report_touched(shapes, measure_touched(shapes, users, Sender(users, "shards"), shards))
    report_ratios(best)


def set_cache(shards, mib):
    for shard in shards:
        setting = f"cache_size={mib}M"
        shard.admin.command("setParameter", 1, wiredTigerEngineRuntimeConfig=setting)


def measure_touched(shapes, users, sender, shards):
    """Of each shape the shards that a call touches: a mean of four, for sends to each number."""
    seen = {}
    for shape in shapes:
        for recipients in RECIPIENTS:
            calls = [(n, shape.statement(n)) for n in sender.notices(4, recipients)]
            each = [touched(shards, lambda: shape.send(*call)) for call in calls]
            seen[shape.name, recipients] = statistics.mean(found for found, _ in each)
        each = [touched(shards, lambda: shape.read(user)) for user in users[:4]]
        seen[shape.name, "read"] = statistics.mean(found for found, _ in each)
        seen[shape.name, "finds"] = statistics.mean(made for _, made in each)
    return seen


def report_sizes(shapes, shards, deliveries):
    print("\nBytes of a delivered notice:\n")
    each = lambda shape: (number(n / deliveries) for n in sizes(shards, shape.collection))
    rows = [[shape.name, *each(shape)] for shape in shapes]
    print(table(["shape", "BSON", "on disk", "indexes"], rows))


def report_sends(shapes, best):
    keys = [(n,) for n in RECIPIENTS]
    head = ["shape", *(f"to {n}" for n in RECIPIENTS)]
    head += [f"µs of the shards, to {n}" for n in RECIPIENTS]
    both = zip(rows_of(shapes, best, keys, 0), rows_of(shapes, best, keys, 1))
    print("\nSends a second:\n")
    print(table(head, [[*rates, *costs[1:]] for rates, costs in both]))


def report_reads(shapes, best):
    keys, alone_ = [("all",), ("little",)], [("all", "alone"), ("little", "alone")]
    parts = [rows_of(shapes, best, keys, 0), rows_of(shapes, best, alone_, 1)]
    parts.append(rows_of(shapes, best, keys, 1))
    head = ["shape", "all in memory", "little in memory", "alone, p50 µs", "little, alone, p50 µs"]
    head += ["µs of the shards", "little, µs of the shards"]
    parts.append(rows_of(shapes, best, [("disk",), ("disk", "bytes")], 1))
    head += ["from the disk, alone, p50 µs", "bytes from the disk"]
    print("\nReads of the newest 50 notices a second:\n")
    print(table(head, [[a[0], *a[1:], *b[1:], *c[1:], *d[1:]] for a, b, c, d in zip(*parts)]))


def report_touched(shapes, seen):
    print("\nShards that a call touches:\n")
    head = ["shape", *(f"send to {n}" for n in RECIPIENTS), "read", "finds of a read"]
    keys = [*RECIPIENTS, "read", "finds"]
    figures = lambda shape: (number(seen[shape.name, key]) for key in keys)
    print(table(head, [[shape.name, *figures(shape)] for shape in shapes]))


def report_ratios(best):
    """Rates of buckets as ratios to those of a document a recipient, and costs the other way."""
    print("\n| | on write | its µs | on write, in _id | its µs |")
    print("| --- | ---: | ---: | ---: | ---: |")
    kinds = {"deliveries, sends to 100": 100, "reads": "all", "reads, little in memory": "little"}
    kinds["reads from the disk, alone"] = "disk"
    buckets = ("buckets", "buckets, one statement")
    for (title, what), of in itertools.product(kinds.items(), buckets):
        if (of, what) in best:
            rate, cost = best[of, what]
            plains = [best[plain, what] for plain in ("on write", "on write, in _id")]
            ratios = [f"{rate / own:.2f} | {used / cost:.2f}" for own, used in plains]
            print(f"| {title}, {of} | {' | '.join(ratios)} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--notices", type=int, default=200, help="of each user at the beginning")
    parser.add_argument("--sends", type=float, default=1, help="0.1 measures a tenth")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cache-mib", type=int, default=4, help="of each shard, at the end")
    parser.add_argument("--only", nargs="*", default=PARTS, help="with --cluster: some parts")
    parser.add_argument("--cluster", help="the URI of a cluster to use")
    options = parser.parse_args()
    given = contextlib.nullcontext(options.cluster)
    with given if options.cluster else cluster(3, 0.5) as uri, MongoClient(uri) as client:
        with contextlib.ExitStack() as stack:
            shards = []
            for row in client.admin.command("listShards")["shards"]:
                host = row["host"].split("/")[-1].split(",")[0]
                shards.append(stack.enter_context(MongoClient(host, directConnection=True)))
                SERVERS.append(shards[-1].admin.command("serverStatus")["pid"])
            run(options, client, shards)
    print("\nload average at the end: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
