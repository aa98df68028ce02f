#!/usr/bin/env python3
"""Compares ways to keep users so that any of their attributes can be searched, without Polynym.

    python3 benches/attribute_indexes.py               100,000 users, two rounds: half an hour
    python3 benches/attribute_indexes.py --users 3000  whether it works
    python3 benches/attribute_indexes.py --only ids    one part: forms, more, tenants, lists,
                                                       postgres, ids

- forms: in MongoDB, the array of names and values with one index for all of them, as Polynym
  keeps it with tokens for the names; the same with the names in full; an index for each
  attribute; and a wildcard index. 20 attributes a user. Also tries how many indexes there may be.
- more: the same with 60 attributes, of a quarter of the users.
- tenants: the array and the wildcard index, with all users in one tenant, in 10 and in 100, which
  have the same values.
- lists: five names of groups in each user, as texts and as binary tokens of four bytes.
- postgres: jsonb with a GIN index (jsonb_path_ops), and a table of attributes with a B-tree.
- ids: users with ids that count up, and with ids that are spread, inserted in turns.

Nobody waits for the disk: MongoDB has w: 1, PostgreSQL synchronous_commit off. Batches are made
before the clock starts. The best of the rounds counts. µs of the processor are those of mongod.
Needs Linux, a mongod 6.0 or later (MONGOD_BIN, PATH or --mongod), PostgreSQL's server programs,
pymongo and psycopg. Prints tables in Markdown.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from datetime import datetime, timedelta, timezone

import bson
import psycopg
from bson.binary import Binary
from bson.int64 import Int64
from bson.raw_bson import RawBSONDocument
from pymongo import IndexModel, InsertOne, MongoClient, UpdateOne
from pymongo.errors import OperationFailure

from databases import mongod, postgres, processor_time
from pages import number, table
from people import COUNT, TEN, as_json, attributes, line, names, say, sequential, spread

TENANT = "many"
BATCH = 1_000
PARTS = ["forms", "more", "tenants", "lists", "postgres", "ids"]
ONE_INDEX = "array, tokens, one index", "wildcard index"
BEGIN = datetime(2020, 9, 13, 12, 26, 40, tzinfo=timezone.utc)


def as_bson(value):
    if isinstance(value, tuple):
        return BEGIN + timedelta(minutes=value[0])
    return Int64(value) if type(value) is int else value


def documents(users, count, put, ids, tenant=TENANT):
    """The users as MongoDB gets them; `put` makes the part that has their attributes."""
    made = []
    for user, own in zip(range(users), ids):
        wire = line(user, 0).encode()
        held = {k: as_bson(v) for k, v in attributes(user, count).items()}
        document = {"_id": Binary(own, 4), "r": Int64(user), "t": tenant, "w": wire, **put(held)}
        made.append(RawBSONDocument(bson.encode(document)))
    return made


class Form:
    """A way to keep attributes in MongoDB: documents, indexes, and how to search and change."""

    def __init__(self, title, count, is_array, key, indexes):
        self.title, self.count, self.is_array, self.indexes = title, count, is_array, indexes
        self.keys = {name: key(place, name) for place, name in enumerate(names(count))}

    def put(self, held):
        if self.is_array:
            return {"a": [{"k": self.keys[name], "v": value} for name, value in held.items()]}
        return {"attrs": {self.keys[name]: value for name, value in held.items()}}

    def where(self, name, condition):
        if self.is_array:
            bounds = condition if isinstance(condition, dict) else {"$eq": condition}
            return {"t": TENANT, "a": {"$elemMatch": {"k": self.keys[name], "v": bounds}}}
        return {"t": TENANT, f"attrs.{self.keys[name]}": condition}

    def change(self, own, name, value):
        if self.is_array:
            return UpdateOne({"_id": own, "a.k": self.keys[name]}, {"$set": {"a.$.v": value}})
        return UpdateOne({"_id": own}, {"$set": {f"attrs.{self.keys[name]}": value}})


def forms(count):
    """The forms. A name in a path must have no dot; names in the array may have any."""
    all_in_one = [[("t", 1), ("a.k", 1), ("a.v", 1), ("_id", 1)]]
    path = lambda place, name: name.replace(".", "_")
    each = [[("t", 1), (f"attrs.{path(0, name)}", 1), ("_id", 1)] for name in names(count)]
    return [
        Form("array, tokens, one index", count, True, lambda place, name: place, all_in_one),
        Form("array, names in full, one index", count, True, lambda place, name: name, all_in_one),
        Form(f"{count} indexes", count, False, path, each),
        Form("wildcard index", count, False, path, [[("attrs.$**", 1)]]),
        Form("fields, no index", count, False, path, []),
    ]


def insert(users, made):
    """Inserts a batch, and gives the seconds and the seconds of the processor."""
    used, start = processor_time(), time.perf_counter()
    users.bulk_write([InsertOne(document) for document in made], ordered=False)
    return time.perf_counter() - start, processor_time() - used


def batches(made):
    return (made[at:at + BATCH] for at in range(0, len(made), BATCH))


def update(users, form, ids, seconds):
    """Changes a number of random users, 200 at once: a second, and µs of the processor."""
    pick, done, used, start = random.Random(2), 0, processor_time(), time.perf_counter()
    own_names = names(form.count)[6::5]
    while time.perf_counter() < start + seconds:
        change = lambda: form.change(
            pick.choice(ids), pick.choice(own_names), Int64(pick.randrange(1_000_000))
        )
        users.bulk_write([change() for _ in range(200)], ordered=False)
        done += 200
    return done / (time.perf_counter() - start), (processor_time() - used) / done * 1e6


def ask(call, calls):
    """The median of calls, in µs. A call gives the number of its users, and what it must be."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        found, wanted = call()
        times.append(time.perf_counter() - start)
        assert found == wanted, (found, wanted)
    return statistics.median(times[calls // 10:]) * 1e6


def sizes(users, paths=()):
    """Bytes of a user: BSON, on disk, all but the index of ids on disk without room for reuse, and
    both in the cache once all was read. `paths` are those of a wildcard index."""
    users.database.client.admin.command("fsync")
    read = lambda match: [{"$match": match}, {"$count": "users"}]
    count = lambda match, **hint: list(users.aggregate(read(match), **hint))
    count({"r": {"$exists": True}})
    for path in paths:
        count({path: {"$exists": True}}, hint="attrs.$**_1")
    for name in users.index_information():
        if name != "attrs.$**_1":
            count({"t": TENANT}, hint=name)
    stats = users.database.command("collStats", users.name, indexDetails=True)
    cached = lambda one: one["cache"]["bytes currently in the cache"]
    indexes = {k: v for k, v in stats["indexDetails"].items() if k != "_id_"}
    unused = lambda one: one["block-manager"]["file bytes available for reuse"]
    index = sum(stats["indexSizes"][name] - unused(one) for name, one in indexes.items())
    cache = cached(stats["wiredTiger"]), sum(cached(one) for one in indexes.values())
    return [n / stats["count"] for n in (stats["size"], stats["storageSize"], index, *cache)]


def measure_form(options, users, form, made):
    """Figures of one form, by name, and its sizes."""
    users.drop()
    if form.indexes:
        users.create_indexes([IndexModel(keys) for keys in form.indexes])
    taken = [insert(users, batch) for batch in batches(made)]
    found = {"insert": len(made) / sum(t for t, _ in taken)}
    found["processor"] = sum(used for _, used in taken) / len(made) * 1e6
    paths = [f"attrs.{key}" for key in form.keys.values()] if "wild" in form.title else ()
    found["sizes"] = sizes(users, paths)
    pick = random.Random(3)
    ids = [Binary(document["_id"], 4) for document in pick.sample(made, len(made) // 2)]
    if form.indexes:
        raw = users.with_options(users.codec_options.with_options(document_class=RawBSONDocument))

        def equal():
            wanted = form.where(TEN, f"group {pick.randrange(len(made) // 10)}")
            return len(list(raw.find(wanted, sort=[("_id", 1)], limit=50))), 10

        def above():
            wanted = form.where(COUNT, {"$gte": Int64(pick.randrange(len(made) - 50))})
            return len(list(raw.find(wanted, limit=50))), 50

        found["equal"], found["range"] = ask(equal, 300), ask(above, 300)
    found["update"], found["change"] = update(users, form, ids, options.seconds)
    users.drop()
    return found


def best(rounds):
    """The best of each figure in the rounds; sizes are those of the last."""
    out = dict(rounds[-1])
    for name in out:
        if name != "sizes":
            pick = max if name in ("insert", "update") else min
            out[name] = pick(one[name] for one in rounds)
    return out


def measure_forms(options, users, count, people):
    """Measures all forms in turns, and prints their tables."""
    all_forms = forms(count)
    made = [documents(people, count, form.put, spread()) for form in all_forms]
    rounds = []
    for _ in range(options.rounds):
        rounds.append([measure_form(options, users, *pair) for pair in zip(all_forms, made)])
        for form, figures in zip(all_forms, rounds[-1]):
            say(f"  {form.title:32} {figures}")
    figures = list(map(best, zip(*rounds)))
    print(f"\n{people:,} users of {count} attributes. Bytes of a user:\n")
    head = ["", "BSON", "on disk", "index on disk", "in the cache", "index in the cache"]
    rows = [[f.title, *map(number, own["sizes"])] for f, own in zip(all_forms, figures)]
    print(table(head, rows))
    print("\nA second, and µs:\n")
    head = ["", "inserts", "µs of processor", "changes of an attribute", "µs of processor"]
    head += ["equality, 10 users, µs", "range, 50 users, µs"]
    columns = ("insert", "processor", "update", "change", "equal", "range")
    show = lambda own, name: number(own[name]) if name in own else ""
    rows = [[f.title, *(show(own, c) for c in columns)] for f, own in zip(all_forms, figures)]
    print(table(head, rows), flush=True)


def measure_tenants(options, users):
    """The same number of users in one tenant and in many, which have the same values."""
    array, wildcard = (form for form in forms(20) if form.title in ONE_INDEX)
    raw = users.with_options(users.codec_options.with_options(document_class=RawBSONDocument))
    pick, rows = random.Random(7), []
    for tenants, form in itertools.product((1, 10, 100), (array, wildcard)):
        users.drop()
        users.create_index(form.indexes[0])
        of_one, ids = options.users // tenants, spread()
        for n in range(tenants):
            for batch in batches(documents(of_one, 20, form.put, ids, f"tenant {n}")):
                insert(users, batch)

        def find(name, condition):
            wanted = form.where(name, condition) | {"t": f"tenant {pick.randrange(tenants)}"}
            order = {"sort": {"_id": 1}} if name == TEN else {}
            return {"find": users.name, "filter": wanted, "limit": 50, **order}

        def time_of(name, condition, expected):
            def call():
                command = find(name, condition())
                order = list(command.get("sort", {}).items()) or None
                return len(list(raw.find(command["filter"], sort=order, limit=50))), expected
            return ask(call, 200)

        equal = lambda: f"group {pick.randrange(of_one // 10)}"
        above = lambda: {"$gte": Int64(pick.randrange(of_one - 50))}
        explain = {"explain": find(TEN, equal()), "verbosity": "executionStats"}
        read = users.database.command(explain)["executionStats"]
        entries = f"{read['totalKeysExamined']:,}", f"{read['totalDocsExamined']:,}"
        times = time_of(TEN, equal, 10), time_of(COUNT, above, 50)
        rows.append([f"{tenants}", form.title, *map(number, times), *entries])
        say(f"  {rows[-1]}")
    users.drop()
    head = ["tenants", "", "equality, 10 users, µs", "range, 50 users, µs"]
    head += ["entries read by the equality", "users read"]
    print(f"\n{options.users:,} users of 20 attributes in all:\n\n" + table(head, rows), flush=True)


def most_indexes(users):
    """How many indexes a collection may have beside that of ids."""
    users.drop()
    for made in itertools.count():
        try:
            users.create_index([("t", 1), (f"attrs.{made}", 1)])
        except OperationFailure as error:
            print(f"\nIndex {made + 2} of a collection: {error.details['codeName']}.")
            return users.drop()


def measure_lists(options, users):
    """Five of 200 groups in each user, with names of 24 characters, as texts and as tokens."""
    pick = random.Random(5)
    groups = [f"group {n:03} of the company" for n in range(200)]
    token = {group: Binary(n.to_bytes(4, "big"), 0) for n, group in enumerate(groups)}
    ways = {"texts": lambda group: group, "tokens": lambda group: token[group]}
    expected = min(50, options.users // 40)
    member = [[groups[(user + 40 * n) % 200] for n in range(5)] for user in range(options.users)]
    keys = [("t", 1), ("a.k", 1), ("a.v", 1), ("_id", 1)]
    rounds = {way: [] for way in ways}
    for _, (way, value) in itertools.product(range(options.rounds), ways.items()):
        form = lambda own: [{"k": 7, "v": value(g), "i": n} for n, g in enumerate(own)]
        lists = iter(member)
        made = documents(options.users, 0, lambda _: {"a": form(next(lists))}, spread())
        users.drop()
        users.create_index(keys)
        taken = [insert(users, batch) for batch in batches(made)]

        def page():
            element = {"k": 7, "v": value(pick.choice(groups))}
            wanted = {"t": TENANT, "a": {"$elemMatch": element}}
            return len(list(users.find(wanted, sort=[("_id", 1)], limit=50))), expected

        figures = {"insert": len(made) / sum(t for t, _ in taken), "sizes": sizes(users)}
        rounds[way].append({**figures, "equal": ask(page, 300)})
        say(f"  {way} {rounds[way][-1]}")
    head = ["", "BSON", "on disk", "index on disk", "in the cache", "index in the cache"]
    head += ["inserts a second", "equality, page of 50, µs"]
    columns = lambda own: [*own["sizes"], own["insert"], own["equal"]]
    rows = [[way, *map(number, columns(best(of_way)))] for way, of_way in rounds.items()]
    users.drop()
    print(f"\n{options.users:,} users with five groups and no other attribute:\n")
    print(table(head, rows), flush=True)


JSONB = """create table users (id uuid primary key, tenant text, w bytea, data jsonb);
    create index on users using gin (data jsonb_path_ops)"""
ROWS = """create table people (id uuid primary key, tenant text, w bytea);
    create table attributes (tenant text, name text, value jsonb, user_id uuid,
        primary key (user_id, name));
    create index on attributes (tenant, name, value, user_id)"""
WHOLE = """select p.id, p.w, (select jsonb_object_agg(a.name, a.value) from attributes a
    where a.user_id = p.id) from found join people p on p.id = found.user_id"""


def measure_postgres(options, connection):
    """The same users in PostgreSQL, in both forms."""
    plain = lambda value: next(iter(as_json(value).values())) if type(value) is tuple else value
    one, people, rows = [], [], []
    for user, own in zip(range(options.users), spread()):
        start = f"{own.hex()}\t{TENANT}\t\\\\x{line(user, 0).encode().hex()}"
        held = {k: plain(v) for k, v in attributes(user, 20).items()}
        one.append(f"{start}\t{json.dumps(held)}\n")
        people.append(start + "\n")
        of_user = (f"{TENANT}\t{k}\t{json.dumps(v)}\t{own.hex()}\n" for k, v in held.items())
        rows.append("".join(of_user))
    pick = random.Random(6)
    group = lambda: f"group {pick.randrange(options.users // 10)}"
    least = lambda: pick.randrange(options.users - 50)
    fetch = lambda query, *values: len(connection.execute(query, values, binary=True).fetchall())
    data = "select id, w, data from users where tenant = %s and "
    of_name = "select user_id, value from attributes where tenant = %s and name = %s and value "
    found = lambda rest: f"with found as ({of_name}{rest} limit 50) {WHOLE}"
    count = f"(data->>'{COUNT}')::bigint"
    equal_rows = found("= %s::jsonb order by user_id")
    range_rows = found(">= %s::jsonb order by value")
    equal_data = data + "data @> %s::jsonb order by id limit 50"
    range_data = data + f"{count} >= %s order by {count} limit 50"
    ways = {
        "jsonb, GIN": (
            JSONB, [("users", one)],
            lambda: (fetch(equal_data, TENANT, json.dumps({TEN: group()})), 10),
            lambda: (fetch(range_data, TENANT, least()), 50),
        ),
        "table of attributes": (
            ROWS, [("people", people), ("attributes", rows)],
            lambda: (fetch(equal_rows, TENANT, TEN, json.dumps(group())), 10),
            lambda: (fetch(range_rows, TENANT, COUNT, str(least())), 50),
        ),
    }
    rounds = {way: [] for way in ways}
    for _, (way, (schema, tables, equal, above)) in itertools.product(
        range(options.rounds), ways.items()
    ):
        connection.execute("drop table if exists users, people, attributes;" + schema)
        taken = 0
        for name, lines in tables:
            for batch in batches(lines):
                start = time.perf_counter()
                with connection.cursor().copy(f"copy {name} from stdin") as copy:
                    copy.write("".join(batch))
                taken += time.perf_counter() - start
        connection.execute("vacuum analyze")
        size = lambda what: sum(
            connection.execute(f"select {what}(%s)", [name]).fetchone()[0] for name, _ in tables
        ) / options.users
        figures = {"insert": options.users / taken, "equal": ask(equal, 300)}
        figures["range"] = ask(above, 300 if len(tables) > 1 else 20)
        figures["sizes"] = [size("pg_table_size"), size("pg_indexes_size")]
        rounds[way].append(figures)
        say(f"  {way} {figures}")
    head = ["", "bytes of a user", "its indexes", "loaded a second", "equality, 10 users, µs"]
    head += ["range, 50 users, µs"]
    columns = lambda own: [*own["sizes"], own["insert"], own["equal"], own["range"]]
    rows = [[way, *map(number, columns(best(of_way)))] for way, of_way in rounds.items()]
    print(f"\n{options.users:,} users of 20 attributes in PostgreSQL:\n\n" + table(head, rows))


def measure_ids(options, database):
    """Users with both kinds of ids, a batch of one after a batch of the other."""
    kinds = {"counting up": sequential(), "spread": spread()}
    array = forms(20)[0]
    for kind in kinds:
        database[kind].drop()
        database[kind].create_index([("t", 1), ("_id", 1)])
    taken, users = {kind: [] for kind in kinds}, 2 * options.users
    for at in range(0, users, BATCH):
        for kind, ids in kinds.items():
            made = documents(min(BATCH, users - at), 20, array.put, ids)
            taken[kind].append(insert(database[kind], made))
    database.client.admin.command("fsync")
    rows = []
    for kind in kinds:
        stats = database.command("collStats", kind, indexDetails=True)
        of_indexes = lambda name: sum(own["cache"][name] for own in stats["indexDetails"].values())
        figures = users / sum(t for t, _ in taken[kind])
        cost = sum(used for _, used in taken[kind]) / users * 1e6
        disk = stats["storageSize"] / users, stats["totalIndexSize"] / users
        cache = of_indexes("bytes currently in the cache") / users
        pages = of_indexes("pages written from cache")
        rows.append([kind, *map(number, (figures, cost, *disk, cache)), f"{pages:,}"])
        database[kind].drop()
    head = ["ids", "inserts a second", "µs of processor", "bytes of a user on disk"]
    head += ["its indexes", "indexes in the cache", "pages of indexes written"]
    print(f"\n{users:,} users of each kind, indexes on ids alone:\n\n" + table(head, rows))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="of changes")
    parser.add_argument("--only", nargs="*", default=PARTS)
    parser.add_argument("--mongod", default=os.environ.get("MONGOD_BIN", "mongod"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="polynym-indexes-") as folder:
        with mongod(options.mongod, folder, 0.5) as port:
            with MongoClient("127.0.0.1", port, directConnection=True, w=1) as client:
                database, users = client["indexes"], client["indexes"]["users"]
                if "forms" in options.only:
                    most_indexes(users)
                    measure_forms(options, users, 20, options.users)
                if "more" in options.only:
                    measure_forms(options, users, 60, options.users // 4)
                if "tenants" in options.only:
                    measure_tenants(options, users)
                if "lists" in options.only:
                    measure_lists(options, users)
                if "ids" in options.only:
                    measure_ids(options, database)
        if "postgres" in options.only:
            with postgres(folder) as address, psycopg.connect(address, autocommit=True) as own:
                measure_postgres(options, own)
    print("\nload average at the end: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
