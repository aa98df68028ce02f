#!/usr/bin/env python3
"""Measures look-ups of users with many attributes, and searches, through a running server.

    python3 benches/search.py                  100,000 users, eight rounds: some ten minutes
    python3 benches/search.py --users 5000     whether it works

Look-ups, on the embedded store and on MongoDB: users with 20 attributes beside the same users
without any, called with `polynym bench`, which checks every answer; and users of whom a mask asks
for the identities alone, called by a client in this script, since `polynym bench` sends no mask.

Searches, on MongoDB: equality, ranges and prefixes beside a find of as many documents by their
ids; and users with 5, 20 and 80 attributes. The calls take turns one by one, so that what else
the machine does falls on all of them. Every answer must have as many users as were loaded for it.

What is compared runs in one go, in short turns, and the best of the rounds counts. Needs Linux, a
`polynym` of `cargo build --release` (or --program), a mongod 6.0 or later (MONGOD_BIN, PATH or
--mongod) and pymongo. The databases need some 4 GB, where TMPDIR says. Prints tables in Markdown.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient

from access import PROGRAM
from attacks import field
from calls import Connection, drive, entries
from databases import SERVERS, mongod, processor_time
from pages import number, table
from people import CODE, COUNT, FIFTY, TEN, email, line, say

SEARCH = "/polynym.v1.DirectoryService/SearchUsers"


@contextlib.contextmanager
def server(options, folder, store, *flags):
    """`polynym serve` on a store. Gives its port."""
    command = [options.program, "serve", "--listen", "127.0.0.1:0", "--tenants", "open"]
    command += ["--store", store, "--log", "error", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    SERVERS.append(process.pid)
    try:
        yield int(process.stdout.readline().rsplit(":", 1)[1])
    finally:
        SERVERS.remove(process.pid)
        process.terminate()
        process.wait()


def made(options, port, name):
    """Makes a store in a database of MongoDB. Gives its connection string."""
    store = f"mongodb://127.0.0.1:{port}/{name}?replicaSet=rs0"
    init = [options.program, "store", "init", "--store", store]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
    return store


def load(options, folder, port, tenant, users, count):
    """Imports users with so many attributes."""
    command = [options.program, "import", "-", "--server", f"http://127.0.0.1:{port}"]
    command += ["--tenant", tenant, "--rejects", f"{folder}/rejects", "--timeout", "60s"]
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr, text=True)
    process.stdin.writelines(line(user, count) for user in range(users))
    process.stdin.close()
    if process.wait():
        sys.exit("the import failed")
    rate = users / (time.monotonic() - start)
    say(f"  {users:,} users of {count} attributes imported, {rate:,.0f} a second")
    return rate


def bodies(options, tenant, mask):
    """Bodies of look-ups of random users, without end."""
    mask = field(6, field(1, mask)) if mask else b""
    pick = random.Random(options.users)
    calls = [
        field(1, tenant) + field(2, field(1, email(user).encode())) + mask
        for user in pick.sample(range(options.users), min(options.users, 50_000))
    ]
    while True:
        yield from calls


def measure_resolve(options, port, store):
    """A row for each way to look users up: the best of calls a second, its ratio to the best
    without attributes, the median of these ratios in a round, and µs of the servers."""
    def checked(tenant):
        command = [options.program, "bench", "resolve", "--server", f"http://127.0.0.1:{port}"]
        command += ["--tenant", tenant, "--users", str(options.users), "--loaded", "--json"]
        command += ["--duration", str(options.duration), "--warmup", "0.5"]
        used = processor_time()
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        used = processor_time() - used
        if report["errors"] or report["wrong"]:
            sys.exit(f"wrong answers: {report}")
        rate = report["calls_per_second"]
        return rate, used / rate / (options.duration + 0.5) * 1e6

    own = lambda tenant, mask: drive(port, bodies(options, tenant, mask), options.duration)
    ways = {
        "no attributes": lambda: checked("plain"),
        "20 attributes": lambda: checked("many"),
        "no attributes, by this script": lambda: own(b"plain", None),
        "no attributes, identities alone": lambda: own(b"plain", b"identities"),
        "20 attributes, by this script": lambda: own(b"many", None),
        "20 attributes, identities alone": lambda: own(b"many", b"identities"),
    }
    found = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, run in ways.items():
            found[way].append(run())
            say(f"  {store:9} {way:32} {found[way][-1]}")
    rows, titles = [], list(ways)
    for place, way in enumerate(titles):
        rates, costs = zip(*found[way])
        base, _ = zip(*found[titles[0 if place < 2 else 2]])
        in_round = statistics.median(own / other for own, other in zip(rates, base))
        ratios = f"{max(rates) / max(base):.2f}", f"{in_round:.2f}"
        rows.append([store, way, number(max(rates)), *ratios, number(min(costs))])
    return rows


def search_cases(options, port, users):
    """What is measured of searches: titles, and functions that make one call each, and the
    titles of those that they are compared with."""
    connection = Connection(port, SEARCH)
    pick = random.Random(4)
    some = lambda limit: pick.randrange(limit)

    def search(tenant, expected, make, mask=None):
        mask = field(6, field(1, mask)) if mask else b""

        def call():
            body = field(1, tenant) + field(2, make().encode()) + bytes([4 << 3, 50]) + mask
            start = time.perf_counter()
            answer = connection.one(body)
            taken = time.perf_counter() - start
            if entries(answer, 1) != expected:
                sys.exit(f"{entries(answer, 1)} users where there are {expected}")
            return taken
        return call

    ids = [user["_id"] for user in users.find({"t": "many"}, {"_id": 1})]
    plain = [user["_id"] for user in users.find({"t": "plain"}, {"_id": 1})]
    own = users.with_options(users.codec_options.with_options(document_class=RawBSONDocument))

    def find(count, fields=None, of=ids):
        def call():
            wanted = pick.sample(of, count)
            start = time.perf_counter()
            found = list(own.find({"_id": {"$in": wanted}}, fields, batch_size=101))
            taken = time.perf_counter() - start
            assert len(found) == count
            return taken
        return call

    token = users.database["names"].find_one({"_id": "many,00000000"})["n"].index(TEN)
    index = [("t", 1), ("a.k", 1), ("a.v", 1), ("_id", 1)]

    def find_equal():
        element = {"k": token, "v": f"group {some(all_users // 10)}"}
        wanted = {"t": "many", "a": {"$elemMatch": element}}
        start = time.perf_counter()
        found = list(own.find(wanted, sort=[("_id", 1)], hint=index, limit=51))
        taken = time.perf_counter() - start
        assert len(found) == 10
        return taken

    all_users, few = options.users, options.few
    ten = lambda limit: lambda: f'attributes."{TEN}" = "group {some(limit // 10)}"'
    fifty = lambda: f'attributes."{FIFTY}" = "group {some(all_users // 50)}"'
    above = lambda: f'attributes."{COUNT}" >= {some(all_users - 100)}'
    prefix = lambda: f'attributes."{CODE}" = "code-{some(all_users // 100):06}*"'
    few_of = lambda n, mask=None: search(b"a%d" % n, 10, ten(few), mask)
    others = {"r": 1, "w": 1}
    by_10, by_50 = "find of 10 by id, driver", "find of 50 by id, driver"
    equal_50 = "equality of 50"
    base, alone = "equality of 10, 20 attributes", "equality of 10, 20 attributes, ids alone"
    cases = {
        by_10: (find(10), by_10),
        by_50: (find(50), by_50),
        "find of 50 by id, all but attributes": (find(50, {"a": 0}), by_50),
        "find of 50 by id, the other fields": (find(50, others), by_50),
        "find of 50 without attributes by id, the same": (find(50, others, plain), by_50),
        "equality of 10, driver": (find_equal, by_10),
        "equality of 10": (search(b"many", 10, ten(all_users)), by_10),
        equal_50: (search(b"many", 50, fifty), by_50),
        "range, page of 50": (search(b"many", 50, above), equal_50),
        "prefix, page of 50 of 100": (search(b"many", 50, prefix), equal_50),
    }
    for n in (5, 20, 80):
        cases[f"equality of 10, {n} attributes"] = few_of(n), base
    for n in (5, 20, 80):
        cases[f"equality of 10, {n} attributes, ids alone"] = few_of(n, b"user_id"), alone
    return cases


def measure_search(options, port, users):
    cases, best = search_cases(options, port, users), {}
    for _ in range(options.rounds):
        times = {title: [] for title in cases}
        for _ in range(options.calls + 20):
            for title, (call, _) in cases.items():
                times[title].append(call())
        for title, taken in times.items():
            taken = sorted(taken[20:])
            pair = statistics.median(taken) * 1e6, taken[int(len(taken) * 0.99)] * 1e6
            best[title] = min(best.get(title, pair), pair)
    return [
        [title, *map(number, best[title]), base, f"{best[title][0] / best[base][0]:.2f}"]
        for title, (_, base) in cases.items()
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--few", type=int, help="users of 5, 20 and 80 attributes: a fifth")
    parser.add_argument("--cache", type=float, default=0.5, help="GiB of MongoDB's cache")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--duration", type=float, default=1, help="seconds of one measurement")
    parser.add_argument("--calls", type=int, default=125, help="searches of each kind and round")
    parser.add_argument("--only", nargs="*", default=["embedded", "mongodb"])
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("--mongod", default=os.environ.get("MONGOD_BIN", "mongod"))
    options = parser.parse_args()
    options.few = options.few or options.users // 5

    loads, look_ups, searches = [], [], []
    with tempfile.TemporaryDirectory(prefix="polynym-search-") as folder:
        def fill(port, store, tenants):
            for tenant, users, count in tenants:
                rate = load(options, folder, port, tenant, users, count)
                loads.append([store, f"{users:,} of {count} attributes", number(rate)])

        both = [("plain", options.users, 0), ("many", options.users, 20)]
        few = [(f"a{n}", options.few, n) for n in (5, 20, 80)]
        if "embedded" in options.only:
            with server(options, folder, f"embedded:{folder}/store", "--create") as port:
                fill(port, "embedded", both)
                look_ups += measure_resolve(options, port, "embedded")
        if "mongodb" in options.only:
            with mongod(options.mongod, folder, options.cache) as database:
                store = made(options, database, "search")
                with server(options, folder, store) as port, MongoClient(store) as client:
                    fill(port, "MongoDB", both + few)
                    look_ups += measure_resolve(options, port, "MongoDB")
                    searches += measure_search(options, port, client["search"]["users"])
    print("\n" + table(["import", "users", "a second"], loads))
    head = ["store", "look-ups at 64", "a second", "ratio", "in a round", "µs of processor"]
    print("\n" + table(head, look_ups))
    head = ["one call at a time", "p50, µs", "p99, µs", "beside", "ratio of p50"]
    if searches:
        print("\n" + table(head, searches))
    print("\nload average at the end: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
