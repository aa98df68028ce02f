#!/usr/bin/env python3
"""Measures imports and exports against what the store below could do, in turns: the better of the rounds, and the ratios of each.

An import into the embedded store is compared with the same rows (users, claims, index entries) in plain batches of redb; one
into MongoDB with unordered insertions of the same documents of users and claims; an export with a scan of the table of users.
Prints the peak memory of client and server as well. The users have three identities and three attributes.

Needs `cargo build --release -p polynym -p floor`. `--mongod PROGRAM` starts a replica set of one; without it, MongoDB is left out.
"""

import argparse
import re
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from access import PROGRAM

FLOOR = PROGRAM.with_name("floor")


def rate(*arguments):
    """The users a second that the floor program prints."""
    arguments = [str(argument) for argument in arguments]
    return float(subprocess.run([FLOOR, *arguments], check=True, capture_output=True, text=True).stdout)


def client(*arguments):
    """Runs a command of the client. Returns its seconds and its peak memory in MiB."""
    begun = time.monotonic()
    command = [PROGRAM, *map(str, arguments)]
    with tempfile.TemporaryFile("w+") as complaint:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=complaint)
        memory = 0
        while process.poll() is None:
            # The peak that the system counts for a child begins with that of its parent.
            memory = peak(process) or memory
            time.sleep(0.05)
        if process.returncode != 0:
            complaint.seek(0)
            raise SystemExit(f"{arguments[0]} failed: {complaint.read()}")
    return time.monotonic() - begun, memory


def peak(process):
    """The peak memory of a process in MiB; none once it has ended."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s*(\d+)", status)
    return int(found[1]) / 1024 if found else 0


class Server:
    """A server on a free port, for as long as the block takes."""

    def __init__(self, *arguments):
        self.command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--log", "error", *map(str, arguments)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        return self

    def peak(self):
        return peak(self.process)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Mongod:
    """A replica set of one."""

    def __init__(self, program, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        folder.mkdir()
        command = [program, "--dbpath", folder, "--port", str(port), "--replSet", "rs0", "--bind_ip", "127.0.0.1"]
        self.uri = f"mongodb://127.0.0.1:{port}"
        log = ["--wiredTigerCacheSizeGB", "0.5", "--logpath", folder / "log"]
        self.process = subprocess.Popen([*command, *log], stdout=subprocess.DEVNULL)
        subprocess.run([FLOOR, "initiate", self.uri], check=True)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def transfer(figures, name, server, users, count, ids):
    """Imports the users and exports them again."""
    rejects = users.with_suffix(".rejects")
    seconds, memory = client("import", users, "--server", server.url, "--rejects", rejects, "--ids", ids)
    note(figures, f"{name}: import, users/s", count / seconds)
    note(figures, f"{name}: import, MiB of the client", memory)
    note(figures, f"{name}: import, MiB of the server", server.peak())
    seconds, memory = client("export", "--server", server.url, "--output", users.with_suffix(".out"))
    note(figures, f"{name}: export, users/s", count / seconds)


def note(figures, name, figure):
    figures.setdefault(name, []).append(figure)
    print(f"{name:48} {figure:12,.0f}", flush=True)


def ratio(figures, name, floor):
    """Prints the ratio of each round, whose figures were measured one after the other."""
    ratios = [figure / below for figure, below in zip(figures[name], figures[floor])]
    print(f"{name} / {floor.split(': ')[1]}: " + ", ".join(f"{ratio:.2f}" for ratio in ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--mongodb-users", type=int, default=200_000)
    parser.add_argument("--ids", choices=["variable", "sequential"], default="variable")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cache", default="64MiB")
    parser.add_argument("--hints", default="16MiB")
    parser.add_argument("--mongod")
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        folder = Path(folder)
        counts = {"embedded": options.users}
        mongod = None
        if options.mongod:
            counts["MongoDB"] = options.mongodb_users
            mongod = Mongod(options.mongod, folder / "mongod")
        for name, count in counts.items():
            sample = [PROGRAM, "sample", "--users", str(count), "--dirty", "0"]
            (folder / f"{name}.jsonl").write_bytes(subprocess.run(sample, check=True, capture_output=True).stdout)
        try:
            for turn in range(options.rounds):
                store = folder / f"store{turn}"
                memory = ["--cache", options.cache, "--hints", options.hints]
                with Server("--create", "--store", f"embedded:{store}", *memory) as server:
                    transfer(figures, "embedded", server, folder / "embedded.jsonl", options.users, options.ids)
                note(figures, "embedded: batches of redb, users/s", rate("redb", store / "directory.redb", folder / "floor"))
                note(figures, "embedded: scan, users/s", rate("scan", store / "directory.redb"))
                (folder / "floor").unlink()
                if mongod:
                    uri, plain = (f"{mongod.uri}/{name}{turn}?replicaSet=rs0" for name in ("store", "plain"))
                    for database in (uri, plain):
                        subprocess.run([PROGRAM, "store", "init", "--store", database], check=True, capture_output=True)
                    with Server("--store", uri, "--hints", options.hints) as server:
                        transfer(figures, "MongoDB", server, folder / "MongoDB.jsonl", options.mongodb_users, options.ids)
                    inserted = rate("mongo", f"{mongod.uri}/?replicaSet=rs0", f"store{turn}", f"plain{turn}")
                    note(figures, "MongoDB: insertions, users/s", inserted)
        finally:
            if mongod:
                mongod.stop()
    best = {name: min(noted) if "MiB" in name else max(noted) for name, noted in figures.items()}
    print()
    for name, figure in best.items():
        print(f"best of {options.rounds}: {name:40} {figure:12,.0f}")
    ratio(figures, "embedded: import, users/s", "embedded: batches of redb, users/s")
    ratio(figures, "embedded: export, users/s", "embedded: scan, users/s")
    if options.mongod:
        ratio(figures, "MongoDB: import, users/s", "MongoDB: insertions, users/s")


if __name__ == "__main__":
    main()
