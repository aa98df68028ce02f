"""Writes docs/benchmarks-mongodb.md and its plots from what benches/mongo_table.py measured."""

import statistics

import pages
import plot
from measure import CONCURRENCIES, Measured
from pages import CAUTION, by_concurrency, locked, number, table

WRITERS = (1, 16, 64)
SHARDS = ("1 shard", "2 shards", "3 shards")
PLACES = ("replica set", "1 shard", "3 shards")
PLAIN, STORE, COALESCED = "two finds, a plain program", "two finds, the store", "coalesced"
LOOKUP, INSIDE = "one $lookup", "an index inside the user"
READERS = (PLAIN, STORE, COALESCED, LOOKUP, INSIDE)
SCATTER = ("two finds", "coalesced", "scatter-gather")
WRITES = ("create, one transaction", "create, plain inserts", "link, one transaction", "link, plain writes")


def server_figures(data):
    measured = Measured()
    measured.calls = {(name, concurrency): reports for name, concurrency, reports in data["calls"]}
    measured.figures = data["figures"]
    return measured


def driver_figures(data):
    measured = Measured()
    for rate in data["rates"]:
        rounds = zip(rate["per_second"], rate["p99_us"], rate["server_us"])
        fields = ("calls_per_second", "p99_us", "server_us")
        name = f"{rate['comparison']}, {rate['place']}, {rate['what']}"
        measured.calls[name, rate["concurrency"]] = [dict(zip(fields, figures)) for figures in rounds]
    return measured


def reader(what):
    return f"lookup, replica set, {what}"


def goals(server, driver):
    """Rows of the table of goals: what, floor, goal, measured figures of the rounds, whether less is better."""
    rows = []
    for concurrency, floor, goal in ((1, 0.95, 1), (16, 2, 3), (64, 3.5, 5.5), (256, 4.5, 7)):
        ratios = server.ratios(("coalesced", concurrency), ("two finds", concurrency))
        rows.append((f"coalesced / two finds, calls a second, at {concurrency}", floor, goal, ratios, False))
    p99 = server.ratios(("coalesced", 64), ("two finds", 64), "p99_us")
    no_op = server.ratios(("coalesced", 256), ("no-op", 256))
    batches = server.ratios(("batch", 64), ("two finds", 64), "identifiers_per_second", "calls_per_second")
    lookup = driver.ratios((reader(COALESCED), 64), (reader(LOOKUP), 64))
    scatter = driver.ratios(("scatter, 3 shards, coalesced", 64), ("scatter, 3 shards, scatter-gather", 64))
    rows += [
        ("coalesced / two finds, p99, at 64", 0.4, 0.25, p99, True),
        ("coalesced / no-op, calls a second, at 256", 0.33, 0.45, no_op, False),
        ("identifiers in batches of 100 / calls of two finds, at 64", 15, 20, batches, False),
        ("coalesced / one `$lookup`, without a server, at 64", 5, None, lookup, False),
        ("coalesced / scatter-gather on three shards, without a server, at 64", 1, None, scatter, False),
    ]
    for concurrency in (1, 64):
        plain = driver.ratios((reader(STORE), concurrency), (reader(PLAIN), concurrency))
        what = f"two finds of the store / of a plain program, without a server, at {concurrency}"
        rows.append((what, 0.95, 1, plain, False))
    return rows


def rates(driver, rows, concurrencies=CONCURRENCIES):
    """Calls a second, their 99th percentile, and what one costs the database; a row is a title and a name."""
    by = lambda field: by_concurrency(driver, [(title, name, field) for title, name in rows], concurrencies)
    return "\n\n".join([
        "Calls a second:",
        by("calls_per_second"),
        "99th percentile in microseconds:",
        by("p99_us"),
        "Microseconds of MongoDB's processor time for one call:",
        by("server_us"),
    ])


def scatter(driver):
    return rates(driver, [(f"{what}, {place}", f"scatter, {place}, {what}") for what in SCATTER for place in SHARDS])


def growth(driver):
    """How the cost of a look-up at 64 grows with the shards."""
    cost = lambda what, place: driver.median(f"scatter, {place}, {what}", 64, "server_us")
    rows = [[what, *(number(cost(what, place) / cost(what, SHARDS[0])) for place in SHARDS)] for what in SCATTER]
    return table(["", *SHARDS], rows)


def writes(driver):
    names = [(f"{what}, {place}", f"writes, {place}, {what}") for place in PLACES for what in WRITES]
    shares = []
    for place in PLACES:
        for over, under in (WRITES[:2], WRITES[2:]):
            pair = lambda c: ((f"writes, {place}, {over}", c), (f"writes, {place}, {under}", c))
            ratios = [number(statistics.median(driver.ratios(*pair(c)))) for c in WRITERS]
            shares.append([f"{over.split(',')[0]}, {place}", *ratios])
    share = table(["transaction / plain", *(str(c) for c in WRITERS)], shares)
    return f"{rates(driver, names, WRITERS)}\n\n{share}"


def sizes(data):
    rows = []
    for size in data["sizes"]:
        of_one = [size[kind] / size["documents"] for kind in ("data_bytes", "disk_bytes", "index_bytes")]
        rows.append([size["what"], f"{size['documents']:,}", *(f"{figure:.1f}" for figure in of_one)])
    return table(["bytes for one", "documents", "as BSON", "on disk", "of index"], rows)


def spreads(data):
    """Of each kind of id: the shares of the shards in all, that of the busiest one of five minutes, and who they were."""
    rows = []
    for spread in data["spreads"]:
        slices = [slice for slice in spread["slices"] if sum(slice)]
        totals = [sum(column) for column in zip(*slices)]
        percent = lambda figure, of: f"{100 * figure / sum(of):.0f} %"
        busiest = [max(range(len(slice)), key=slice.__getitem__) for slice in slices]
        rows.append([
            spread["ids"],
            ", ".join(percent(total, totals) for total in totals),
            f"{statistics.median(100 * max(slice) / sum(slice) for slice in slices):.0f} %",
            number(len(set(busiest))),
            number(statistics.median(sum(1 for count in slice if count) for slice in slices)),
            f"{spread['index_bytes'] / sum(totals):.1f}",
        ])
    head = ["ids", "of all writes, by shard", "of five minutes, the busiest shard", "shards that were busiest"]
    return table([*head, "shards that hold the users of five minutes", "bytes of index for one"], rows)


PAGE = """# Benchmarks of the store on MongoDB

Written by `python3 benches/mongo_table.py`; nothing here is typed by hand. Owner hints are off, so
that two finds are two finds: [benchmarks-hints.md](benchmarks-hints.md) has look-ups with them.

{machine}

Each figure is the median of {rounds} rounds in which what is compared took turns; in brackets the lowest and the highest
round. Every answer was checked: none was wrong, none failed.{caution}

- **Behind the server**: {users:,} users of three identities each in a replica set of one member with {cache} GiB of cache,
  loaded through the API{load}. The client, `polynym bench`, is a process of its own, uses four connections and
  picks users at random, {duration:g} s for each figure after {warmup:g} s of warming up. *Coalesced* is how the server runs
  unless told otherwise, *two finds* is `serve --coalesce off`, *no-op* is `grpc.health.v1.Health/Check` on the first.
- **Without a server**: the store in the process of the callers, `cargo bench --bench mongo`, beside what one would do
  without it; {driver_users:,} users, {driver_seconds:g} s for each figure of {driver_rounds} rounds. Answers must be the
  very bytes that were loaded. What needs a cluster, which is slow to load, has a tenth of the users.

## Goals

{goals}

## Behind the server

Calls a second; for batches of 100, identifiers a second.

{throughput}

![throughput against concurrency](benchmarks-mongodb-throughput.svg)

99th percentile in microseconds.

{latency}

![99th percentile against concurrency](benchmarks-mongodb-p99.svg)

Users created with three identities, and identities linked and unlinked in turn, a second: a transaction each, and its
99th percentile in microseconds.

{changes}

## Ways to look up an identifier

On the replica set, without a server. *A plain program* sends a find for the claim and one for its user with the driver's
own `find_one`. *The store* does the same as a look-up of Polynym, its checks included. *One $lookup* joins the two in one
aggregate. *An index inside the user* has no claims: the user lists its keys, under a unique index.

{lookup}

## With one, two and three shards

All shards run on this one machine: what more shards bring in hardware is not seen here, what they cost is. *Two finds* and
*coalesced* are those of the store, each read routed to one shard by the identifier and then by the user's id.
*Scatter-gather* is the index inside the user again: an identifier says nothing of the shard, so that each look-up goes to
all of them. On a cluster that index cannot be unique, either, since a unique index must begin with the shard key: two
users could own one identifier.

{scatter}

What one look-up costs MongoDB at 64, as a multiple of the cost with one shard:

{growth}

![cost of a look-up against shards](benchmarks-mongodb-shards.svg)

## What a transaction costs

The same documents written by the store in one transaction, and without one: the user, then its claims by an ordered
insert, each waiting for a majority. Without a transaction, a failure in between leaves a user without its identifiers. On
three shards a create usually touches all of them.

{writes}

## Bytes

As many claims as there are users elsewhere, and their users. On disk is compressed; of index is all indexes.

{sizes}

## Which shards take the writes

Three shards. The ids are those of two hours, as four servers would have made them; the hours pass as fast as the
documents can be written. For Locality UUIDs the id space was cut by `split_points` beforehand. ObjectIds and UUIDs of
version 7 begin with the time, so that what is to come lies in one piece whatever cuts were made: here the cuts are even
ones of the year before, as a balancer leaves them.

{spreads}

![shares of the shards over two hours](benchmarks-mongodb-locality.svg)

Variable ids keep all shards busy at all times. Sequential ids keep the users of ten minutes together, and move on to
another place with each window. With ids that begin with the time, one shard takes everything.

## Not measured here

{router}
- More than one machine: callers, servers and databases share {cores}, so that only ratios count. One member acknowledges
  for the majority; a second and a third would add their round trips to every write.
- Failovers, migrations and bad networks: tests look at what is right then, not at how fast it is.
- Databases larger than memory.
"""

FRONT = """- A `mongos`. None was found, and no package registry carries one. The shards are MongoDB's own, and so are the routing of
  each operation and the commit of transactions over several shards; but what drivers take for a mongos is a small front end
  of the tests, in the process of the benchmark. Its cost is in all figures with shards, most of all with those of many small
  operations, and in none of MongoDB's processor time."""
MONGOS = "- Several routers: one `mongos` on the same machine served all figures with shards."


def page(options, polynym, data, figures):
    (server, driver), (server_data, driver_data) = figures, data
    latencies = [(f"{name}, {q}", name, f"{q}_us") for name in ("no-op", "coalesced", "two finds") for q in ("p50", "p99")]
    fields = [(name, name, "calls_per_second") for name in ("no-op", "coalesced", "two finds")]
    changes = [(name, name, "calls_per_second") for name in ("create", "link")]
    changes += [(f"{name}, p99", name, "p99_us") for name in ("create", "link")]
    versions = [f"mongod {driver_data['server']}, MongoDB's driver {locked('mongodb')}"]
    machine = pages.machine(polynym, "the callers, the server and MongoDB", versions)
    return PAGE.format(
        machine=machine,
        cores=machine.split("(")[0].strip("- \n"),
        caution=CAUTION if server_data["quick"] else "",
        load="".join(f" in {seconds:.0f} s" for seconds in server.figures.get("load", [])),
        **{name: server_data[name] for name in ("users", "rounds", "duration", "warmup", "cache")},
        **{f"driver_{name}": driver_data[name] for name in ("users", "seconds")},
        driver_rounds=" to ".join(map(str, sorted({len(rate["per_second"]) for rate in driver_data["rates"]}))),
        goals=pages.goals(goals(server, driver)),
        throughput=by_concurrency(server, [*fields, ("batches of 100", "batch", "identifiers_per_second")]),
        latency=by_concurrency(server, latencies),
        changes=by_concurrency(server, changes, WRITERS),
        lookup=rates(driver, [(what, reader(what)) for what in READERS]),
        scatter=scatter(driver),
        growth=growth(driver),
        writes=writes(driver),
        sizes=sizes(driver_data),
        spreads=spreads(driver_data),
        router=MONGOS if driver_data["mongos"] else FRONT,
    )


def plots(server, driver, spread, folder):
    calls = [(title, title, "calls_per_second") for title in ("no-op", "coalesced", "two finds")]
    against_concurrency(server, folder / "benchmarks-mongodb-throughput.svg", "per second", [
        *calls, ("batches of 100", "batch", "identifiers_per_second")
    ])
    p99s = [(title, title, "p99_us") for title in ("no-op", "coalesced", "two finds")]
    against_concurrency(server, folder / "benchmarks-mongodb-p99.svg", "99th percentile, microseconds", p99s)
    cost = lambda what: [driver.median(f"scatter, {place}, {what}", 64, "server_us") for place in SHARDS]
    lines = [(what, cost(what)) for what in SCATTER]
    unit = "microseconds of MongoDB for a look-up, at 64"
    plot.write(folder / "benchmarks-mongodb-shards.svg", unit, SHARDS, lines, "")
    panels = [(kind["ids"], kind["slices"]) for kind in spread]
    shards = [f"shard {n + 1}" for n in range(len(spread[0]["slices"][0]))]
    along = "shares of the shards in the writes, five minutes a column, over two hours"
    plot.stacks(folder / "benchmarks-mongodb-locality.svg", shards, panels, along)


def against_concurrency(server, path, unit, rows):
    lines = [(title, [server.median(name, c, field) for c in CONCURRENCIES]) for title, name, field in rows]
    plot.write(path, unit, CONCURRENCIES, lines)


def write(options, polynym, server_data, driver_data):
    """Writes the page and the plots."""
    figures = server_figures(server_data), driver_figures(driver_data)
    options.out.mkdir(parents=True, exist_ok=True)
    text = page(options, polynym, (server_data, driver_data), figures)
    (options.out / "benchmarks-mongodb.md").write_text(text)
    plots(*figures, driver_data["spreads"], options.out)
