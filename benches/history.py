#!/usr/bin/env python3
"""Measures what histories cost: the same mutations and look-ups in a tenant that keeps a history and in one that keeps
none, in turn; pages of a history beside GetUser; and former owners beside present ones.

    python3 benches/history.py --mongod mongod

`polynym bench` checks every answer. Needs a release build and pymongo.
"""

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from access import PROGRAM
from attacks import field
from calls import Connection, drive
from databases import mongod
from pages import number, table
from people import say
from search import made, server

TENANTS = {"kept": "400d", "none": "0s"}
SERVICE = "/polynym.v1.DirectoryService/"
UPDATE = "/polynym.v1.RegistryService/UpdateUser"
EVENTS = 1_000


def run(options, port, *arguments):
    command = [options.program, *arguments, "--server", f"http://127.0.0.1:{port}"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def bench(options, port, mode, tenant):
    """Calls a second."""
    more = ["--tenant", tenant, "--json", "--duration", str(options.duration), "--warmup", "0.5"]
    report = json.loads(run(options, port, "bench", mode, *more, "--users", "10000"))
    if report["errors"] or report["wrong"]:
        sys.exit(f"wrong answers: {report}")
    return report["calls_per_second"]


def ids(options, port, tenant):
    """The ids of some users of a tenant."""
    lines = run(options, port, "export", "--tenant", tenant).splitlines()
    return [found[1] for line in lines if (found := re.search(r'"userId": ?"([^"]+)"', line))][:5_000]


def updates(tenant, users):
    """Requests that give users a new name each, for ever."""
    for n in itertools.count():
        own = field(1, users[n % len(users)].encode()) + field(4, f"Name {n}".encode())
        yield field(1, tenant.encode()) + field(2, own) + field(3, field(1, b"display_name"))


def at_64(options, port, store):
    """A row for each kind of calls: the best rates, their ratio, and the median of those in a round."""
    for tenant, retention in TENANTS.items():
        run(options, port, "bench", "create", "--tenant", tenant, "--duration", "1")
        run(options, port, "tenant", "set", "--tenant", tenant, "--history-retention", retention)
    rows, users = [], {tenant: ids(options, port, tenant) for tenant in TENANTS}
    for mode in ("create", "link", "update", "resolve"):
        rates = {tenant: [] for tenant in TENANTS}
        for _ in range(options.rounds):
            for tenant in TENANTS:
                if mode == "update":
                    rate, _ = drive(port, updates(tenant, users[tenant]), options.duration, path=UPDATE)
                else:
                    rate = bench(options, port, mode, tenant)
                rates[tenant].append(rate)
                say(f"  {store:9} {mode:8} {tenant} {rates[tenant][-1]:,.0f}")
        kept, none = rates["kept"], rates["none"]
        in_round = statistics.median(own / other for own, other in zip(kept, none))
        ratio = f"{max(kept) / max(none):.2f}"
        rows.append([store, mode, number(max(none)), number(max(kept)), ratio, f"{in_round:.2f}"])
    return rows


def varint(value):
    text = b""
    while value > 127:
        text += bytes([value & 127 | 128])
        value >>= 7
    return text + bytes([value])


def one_at_a_time(options, port, store):
    """Rows of calls that wait for each other: p50 in µs, beside another call."""
    user = json.loads(run(options, port, "user", "create", "--json", "--tenant", "kept",
                          "--identity", "email:a@example.com", "--identity", "email:b@example.com"))
    user = user.get("user", user)["userId"]
    update = Connection(port, UPDATE)
    for n in range(EVENTS):
        own = field(1, user.encode()) + field(4, f"Name {n}".encode())
        update.one(field(1, b"kept") + field(2, own) + field(3, field(1, b"display_name")))
    then = int(time.time())
    time.sleep(2)
    run(options, port, "identity", "unlink", user, "email:b@example.com", "--tenant", "kept")
    tenant, email = field(1, b"kept"), lambda name: field(2, field(1, name))
    as_of = field(7, b"\x08" + varint(then))
    calls = {
        "GetUser": tenant + field(2, user.encode()),
        "ListHistory": tenant + field(2, user.encode()) + b"\x38" + varint(50),
        "ResolveIdentity": tenant + email(b"a@example.com"),
        "of the past": tenant + email(b"b@example.com") + as_of,
    }
    lines = {name: Connection(port, SERVICE + name.replace("of the past", "ResolveIdentity"))
             for name in calls}
    times = {name: [] for name in calls}
    for _ in range(options.calls):
        for name, body in calls.items():
            start = time.perf_counter()
            answer = lines[name].one(body)
            times[name].append(time.perf_counter() - start)
            if not answer:
                sys.exit(f"{name} found nothing")
    p50 = {name: statistics.median(own) * 1e6 for name, own in times.items()}
    row = lambda what, name, beside: [
        store, what, number(p50[name]), number(p50[beside]), f"{p50[name] / p50[beside]:.2f}"
    ]
    return [
        row(f"50 events of {EVENTS:,}, beside GetUser", "ListHistory", "GetUser"),
        row("a former owner, beside a present one", "of the past", "ResolveIdentity"),
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=int, default=2, help="seconds of one measurement")
    parser.add_argument("--calls", type=int, default=1_000, help="calls of each kind, one at a time")
    parser.add_argument("--only", nargs="*", default=["embedded", "mongodb"])
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("--mongod", default=os.environ.get("MONGOD_BIN", "mongod"))
    options = parser.parse_args()
    rates, waits = [], []
    with tempfile.TemporaryDirectory(prefix="polynym-history-") as folder:
        if "embedded" in options.only:
            with server(options, folder, f"embedded:{folder}/store", "--create") as port:
                rates += at_64(options, port, "embedded")
                waits += one_at_a_time(options, port, "embedded")
        if "mongodb" in options.only:
            with mongod(options.mongod, folder, 0.5) as database:
                store = made(options, database, "history")
                with server(options, folder, store) as port:
                    rates += at_64(options, port, "MongoDB")
                with server(options, folder, store, "--coalesce", "off") as port:
                    waits += one_at_a_time(options, port, "MongoDB")
    head = ["store", "calls at 64", "without, a second", "with", "ratio", "in a round"]
    print("\n" + table(head, rates))
    print("\n" + table(["store", "one call at a time", "p50, µs", "beside, µs", "ratio"], waits))
    print("\nload average at the end: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
