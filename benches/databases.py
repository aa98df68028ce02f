"""MongoDB and PostgreSQL for a measurement, in folders that go at the end."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from pymongo import MongoClient

from measure import ROOT

# The processes that the work is done by, apart from the client.
SERVERS = []


def processor_time():
    """The seconds that the servers have had of the processors."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in SERVERS]
    return sum(int(own[11]) + int(own[12]) for own in stats) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def mongod(program, folder, cache):
    """A replica set of one member with so many GiB of cache. Gives its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = Path(folder) / f"mongod-{port}"
    data.mkdir()
    command = [program, "--replSet", "rs0", "--port", str(port), "--bind_ip", "127.0.0.1"]
    command += ["--dbpath", data, "--wiredTigerCacheSizeGB", str(cache), "--quiet"]
    command += ["--setParameter", "diagnosticDataCollectionEnabled=false"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    SERVERS.append(process.pid)
    try:
        with MongoClient("127.0.0.1", port, directConnection=True) as client:
            member = {"_id": 0, "host": f"127.0.0.1:{port}"}
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
            while not client.admin.command("hello")["isWritablePrimary"]:
                time.sleep(0.1)
        yield port
    finally:
        SERVERS.remove(process.pid)
        process.terminate()
        process.wait()
        shutil.rmtree(data)


@contextlib.contextmanager
def cluster(shards, cache):
    """A sharded cluster, as the tests have it, with so many GiB of cache a shard. Gives its URI."""
    command = ["cargo", "bench", "--bench", "cluster", "--", "--shards", str(shards)]
    command += ["--cache", str(cache)]
    # A group of its own: Cargo does not pass the signal on.
    own = {"cwd": ROOT, "start_new_session": True}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **own)
    try:
        ready = next((line for line in process.stdout if line.startswith("ready ")), None)
        if ready is None:
            raise SystemExit("the cluster did not start")
        yield ready.split()[1]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@contextlib.contextmanager
def postgres(folder):
    """A PostgreSQL. Gives its address."""
    os.chmod(folder, 0o711)
    data, found = Path(folder) / "postgres", shutil.which("pg_ctl")
    programs = Path(found).parent if found else max(Path("/usr/lib/postgresql").glob("*/bin"))
    data.mkdir()
    who = []
    if os.geteuid() == 0:
        # It does not run as root.
        shutil.chown(data, "postgres")
        who = ["runuser", "-u", "postgres", "--"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/"}
    initdb = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--locale", "C"]
    subprocess.run([*who, *initdb, "-E", "UTF8"], **quiet)
    settings = {"shared_buffers": "512MB", "synchronous_commit": "off", "listen_addresses": ""}
    settings |= {"unix_socket_directories": data, "max_wal_size": "4GB"}
    flags = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
    pg_ctl = [*who, programs / "pg_ctl", "-D", data, "-w"]
    subprocess.run([*pg_ctl, "-l", data / "log", "-o", flags, "start"], **quiet)
    try:
        yield f"host={data} user=postgres dbname=postgres"
    finally:
        subprocess.run([*pg_ctl, "-m", "immediate", "stop"], **quiet)
        shutil.rmtree(data)
