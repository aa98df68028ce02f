#!/usr/bin/env python3
"""Compares ways to keep a bounded history of each user in MongoDB, without Polynym.

    python3 benches/histories.py --mongod mongod       1,000 users of 200 events: some minutes
    python3 benches/histories.py --users 50 --rounds 1 whether it works

- tail: the user's document has the last 8 events, as Polynym keeps them; when they are full they
  become a document of their own.
- by number: documents of up to 50 events, by $push; what is over age goes by $pull.
- fixed: one document with the last 200 events, by $push with $slice.
- by day: a document for each user and day, by $push; it goes by a TTL index.

An event has 120 bytes; a user has ten events a day. Each round of updates has one event of every
user, in one command, w: 1; the shapes take turns. Then the newest 50 events of users are read, one
read at a time, and what is older than ten days is removed. The best of the rounds counts.
Needs a mongod 6.0 or later and pymongo.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from datetime import datetime, timedelta, timezone

from pymongo import InsertOne, MongoClient, UpdateMany, UpdateOne

from databases import mongod
from pages import number, table
from people import say

EVENTS, A_DAY, PAGE = 200, 10, 50
TAIL, BUCKET = 8, 50
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def event(n):
    return {"n": n, "t": BEGIN + timedelta(days=n // A_DAY, minutes=n % A_DAY), "w": bytes(90)}


class Tail:
    name, events_of = "tail", ("users", "journal")

    def add(self, user, n):
        update = UpdateOne({"_id": user}, {"$push": {"j": event(n)}}, upsert=True)
        if n % TAIL or not n:
            return {"users": [update]}
        old = [event(m) for m in range(n - TAIL, n)]
        start = UpdateOne({"_id": user}, {"$set": {"j": [event(n)]}})
        return {"users": [start], "journal": [InsertOne({"_id": (user << 20) + n - TAIL, "e": old})]}

    def read(self, database, user):
        newest = database.users.find_one({"_id": user})["j"]
        low = user << 20
        for bucket in database.journal.find({"_id": {"$gte": low, "$lt": low + EVENTS}}).sort("_id", -1).limit(PAGE // TAIL + 1):
            newest = bucket["e"] + newest
        return newest[-PAGE:]

    def expire(self, users, day):
        last = (day * A_DAY) // TAIL * TAIL - TAIL
        return {"journal": [("delete", {"_id": {"$gte": user << 20, "$lt": (user << 20) + last}}) for user in users]}


class ByNumber:
    name, events_of = "by number", ("bynumber",)

    def add(self, user, n):
        return {"bynumber": [UpdateOne({"_id": (user << 20) + n // BUCKET}, {"$push": {"e": event(n)}}, upsert=True)]}

    def read(self, database, user):
        low = user << 20
        buckets = list(database.bynumber.find({"_id": {"$gte": low, "$lt": low + EVENTS}}).sort("_id", -1).limit(2))
        return [own for bucket in reversed(buckets) for own in bucket["e"]][-PAGE:]

    def expire(self, users, day):
        over = {"$pull": {"e": {"t": {"$lt": BEGIN + timedelta(days=day)}}}}
        return {"bynumber": [UpdateMany({"_id": {"$gte": user << 20, "$lt": (user << 20) + EVENTS}}, over) for user in users]}


class Fixed:
    name, events_of = "fixed", ("fixed",)

    def add(self, user, n):
        push = {"$push": {"e": {"$each": [event(n)], "$slice": -EVENTS}}}
        return {"fixed": [UpdateOne({"_id": user}, push, upsert=True)]}

    def read(self, database, user):
        return database.fixed.find_one({"_id": user}, {"e": {"$slice": -PAGE}})["e"]

    def expire(self, users, day):
        over = {"$pull": {"e": {"t": {"$lt": BEGIN + timedelta(days=day)}}}}
        return {"fixed": [UpdateOne({"_id": user}, over) for user in users]}


class ByDay:
    name, events_of = "by day", ("byday",)

    def add(self, user, n):
        day = {"$setOnInsert": {"d": BEGIN + timedelta(days=n // A_DAY)}, "$push": {"e": event(n)}}
        return {"byday": [UpdateOne({"_id": (user << 20) + n // A_DAY}, day, upsert=True)]}

    def read(self, database, user):
        low = user << 20
        days = list(database.byday.find({"_id": {"$gte": low, "$lt": low + EVENTS}}).sort("_id", -1).limit(PAGE // A_DAY + 1))
        return [own for day in reversed(days) for own in day["e"]][-PAGE:]

    def expire(self, users, day):
        return {"byday": [("delete", {"d": {"$lt": BEGIN + timedelta(days=day)}})]}


SHAPES = (Tail(), ByNumber(), Fixed(), ByDay())


def log_bytes(client):
    return client.admin.command("serverStatus")["wiredTiger"]["log"]["log bytes written"]


def write(database, work):
    for name, operations in work.items():
        deletes = [own[1] for own in operations if isinstance(own, tuple)]
        for filter_ in deletes:
            database[name].delete_many(filter_)
        others = [own for own in operations if not isinstance(own, tuple)]
        if others:
            database[name].bulk_write(others, ordered=False)


def together(parts):
    all_work = {}
    for part in parts:
        for name, operations in part.items():
            all_work.setdefault(name, []).extend(operations)
    return all_work


def run(client, options):
    """Of each shape: writes a second, log an event, bytes an event, p50 of a read, seconds to remove."""
    client.drop_database("histories")
    database, users = client["histories"], list(range(options.users))
    database.byday.create_index("d")
    times, logged = ({shape.name: 0 for shape in SHAPES} for _ in range(2))
    for n in range(EVENTS):
        for shape in SHAPES:
            work = together(shape.add(user, n) for user in users)
            before, start = log_bytes(client), time.perf_counter()
            write(database, work)
            times[shape.name] += time.perf_counter() - start
            logged[shape.name] += log_bytes(client) - before
        if n % 20 == 0:
            say(f"  event {n} of {EVENTS}")
    events = EVENTS * options.users
    results = {}
    for shape in SHAPES:
        reads = []
        for _ in range(1_000):
            user = random.randrange(options.users)
            start = time.perf_counter()
            found = shape.read(database, user)
            reads.append(time.perf_counter() - start)
            assert [own["n"] for own in found] == list(range(EVENTS - PAGE, EVENTS)), shape.name
        size = sum(database.command("collStats", name)["size"] for name in shape.events_of)
        start = time.perf_counter()
        write(database, shape.expire(users, EVENTS // A_DAY // 2))
        removed = time.perf_counter() - start
        results[shape.name] = (
            events / times[shape.name], logged[shape.name] / events, size / events,
            statistics.median(reads) * 1e6, removed,
        )
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--mongod", default=os.environ.get("MONGOD_BIN", "mongod"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="polynym-histories-") as folder:
        with mongod(options.mongod, folder, 1) as port, MongoClient(port=port, w=1, tz_aware=True) as client:
            rounds = [run(client, options) for _ in range(options.rounds)]
    head = ["shape", "events a second", "log an event, bytes", "size an event, bytes",
            f"{PAGE} newest, p50 µs", "removing half, s"]
    rows = []
    for shape in SHAPES:
        own = [result[shape.name] for result in rounds]
        best = [max(o[0] for o in own), *(min(o[k] for o in own) for k in range(1, 5))]
        rows.append([shape.name, *map(number, best)])
    print("\n" + table(head, rows))
    print("\nload average at the end: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
