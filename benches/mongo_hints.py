#!/usr/bin/env python3
"""Measures look-ups on MongoDB with and without owner hints, beside PostgreSQL, and writes docs/benchmarks-hints.md.

    python3 benches/mongo_hints.py --store mongodb://127.0.0.1:27017/bench --postgres 'host=127.0.0.1 dbname=bench'

Two servers of one build take turns, one with `--hints 128MiB` and one with `--hints 0`, on one replica set; `polynym bench`
checks every answer. PostgreSQL gets as many users of three identities in two tables, and answers the same question by a
prepared join over TCP, called with `pgbench`: without a server of a directory before it. It needs `psql` and `pgbench`,
and an empty database; without --postgres it is left out.
"""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import ROOT, Run, Server, arguments, build, parse, say

CONCURRENCIES = (1, 16, 64, 256)
TABLES = """
drop table if exists identities, users;
create table users (id uuid primary key, body bytea not null);
create table identities (key text primary key, user_id uuid not null);
insert into users select md5('u' || n)::uuid, decode(repeat(md5(n::text), 20), 'hex') from generate_series(0, {last}) n;
insert into identities select 'default,' || kind || ',' || n, md5('u' || n)::uuid
  from generate_series(0, {last}) n, unnest(array['email', 'handle', 'phone']) kind;
vacuum analyze users; vacuum analyze identities;
"""
LOOK_UP = """\\set n random(0, {last})
select u.id, u.body from identities i join users u on u.id = i.user_id where i.key = 'default,handle,' || :n;
"""


def mongod_cpu_us(options):
    """The processor time of the database's process, in microseconds, where --mongod-pid names it."""
    if not options.mongod_pid:
        return 0
    fields = Path(f"/proc/{options.mongod_pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 10_000


def measure_polynym(options, run):
    with Server(run, "--hints", "128MiB") as on, Server(run, "--hints", "0") as off:
        run.warm(off)
        say("warming the table: batches of all users")
        run.bench(on, "batch", 16, duration=options.warm, warmup=0)
        for round_number in range(options.rounds):
            turns = [("hints", on), ("two reads", off)]
            for concurrency in CONCURRENCIES:
                for name, server in reversed(turns) if round_number % 2 else turns:
                    before = mongod_cpu_us(options)
                    report = run.measure(server, name, "resolve", concurrency)
                    calls = report["calls_per_second"] * (options.duration + options.warmup)
                    run.note(f"{name} {concurrency} cpu", (mongod_cpu_us(options) - before) / calls)


def measure_postgres(options, run):
    last = options.users - 1
    psql = ["psql", "-q", "-v", "ON_ERROR_STOP=1", options.postgres]
    say(f"loading {options.users:,} users into PostgreSQL")
    subprocess.run(psql, input=TABLES.format(last=last), text=True, check=True)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(LOOK_UP.format(last=last))
        script.flush()
        for _ in range(options.rounds):
            for concurrency in CONCURRENCIES[:3]:
                command = ["pgbench", "-n", "-M", "prepared", "-f", script.name, "-c", str(concurrency), "-j", "2"]
                command += ["-T", str(max(1, round(options.duration))), options.postgres]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                rate = float(re.search(r"tps = ([\d.]+)", done.stdout)[1])
                run.note(f"postgres {concurrency}", rate)
                say(f"  PostgreSQL at {concurrency}: {rate:,.0f} /s")


def page(options, run):
    head = "| at once | " + " | ".join(map(str, CONCURRENCIES)) + " |\n| --- |" + " ---: |" * len(CONCURRENCIES)
    rate = lambda name: [f"{run.median(name, n):,.0f}" for n in CONCURRENCIES]
    ratio = [f"{statistics.median(run.ratios(('hints', n), ('two reads', n))):.2f}" for n in CONCURRENCIES]
    cpu = lambda name: [f"{statistics.median(run.figures[f'{name} {n} cpu']):,.0f}" for n in CONCURRENCIES]
    rows = [("`--hints 128MiB`", rate("hints")), ("`--hints 0`", rate("two reads")), ("ratio", ratio)]
    if options.mongod_pid:
        rows += [("`mongod`, µs a look-up, with hints", cpu("hints")), ("without", cpu("two reads"))]
    if options.postgres:
        postgres = [f"{statistics.median(run.figures[f'postgres {n}']):,.0f}" for n in CONCURRENCIES[:3]]
        rows.append(("PostgreSQL, a prepared join", [*postgres, "not measured"]))
    table = "\n".join([head, *(f"| {title} | " + " | ".join(figures) + " |" for title, figures in rows)])
    return f"""# Look-ups with owner hints

{options.users:,} users of three identities on a replica set of one member; keys at random, all equally
likely; client, server and database on the same processors. Calls a second, medians of {options.rounds} rounds
of {options.duration:g} s in turns, from `benches/mongo_hints.py`:

{table}

PostgreSQL is asked without a server before it: no normalisation, no gRPC, no check that the user
lists the name. The client is `pgbench`, with a connection for each caller.
"""


def main():
    parser = arguments(__doc__)
    parser.add_argument("--store", metavar="URI", required=True, help="a database on a replica set; loaded where it is empty")
    parser.add_argument("--mongod-pid", type=int, help="the database's process on this machine, for its processor time")
    parser.add_argument("--postgres", metavar="CONNINFO", help="an empty database of PostgreSQL, reached over TCP")
    parser.add_argument("--warm", type=float, default=100, help="seconds of batches that fill the table of hints")
    options = parse(parser, quick_users=2_000)
    if options.postgres and not (shutil.which("psql") and shutil.which("pgbench")):
        sys.exit("--postgres needs psql and pgbench on the PATH")
    polynym = build(options.profile)
    with tempfile.TemporaryDirectory(prefix="polynym-hints-") as folder:
        run = Run(options, folder, polynym, options.store)
        subprocess.run([polynym, "store", "init", "--store", run.store], check=True, stdout=sys.stderr)
        measure_polynym(options, run)
        if options.postgres:
            measure_postgres(options, run)
    (options.out / "benchmarks-hints.md").write_text(page(options, run))
    say(f"wrote {options.out / 'benchmarks-hints.md'}")


if __name__ == "__main__":
    main()
