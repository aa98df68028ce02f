"""Measures a running server: starts `polynym serve` on a store, calls it with `polynym bench`, and keeps what that tells.

`polynym bench` checks every answer: one wrong or failed answer ends the run. What is compared takes turns within a round,
and the median of the rounds counts.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONCURRENCIES = (1, 16, 64, 256)
KNOWN = "email:ada.allen.0@example.com"  # the first user that `polynym bench` loads


class Server:
    """`polynym serve` on a store, with the time it took to listen and to answer a first look-up, in seconds."""

    def __init__(self, run, *flags, known=False):
        command = [run.polynym, "serve", "--listen", "127.0.0.1:0", "--create", "--store", run.store, *flags]
        start = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=run.log, text=True)
        line = self.process.stdout.readline()
        self.listening = time.monotonic() - start
        found = re.match(r"listening on (http://\S+)", line)
        if not found:
            self.stop()
            sys.exit(f"the server did not start; its log:\n{run.read_log()}")
        self.address = found[1]
        if known:
            look_up = [run.polynym, "resolve", "--server", self.address, "--tenant", "bench", KNOWN]
            subprocess.run(look_up, check=True, stdout=subprocess.DEVNULL)
        self.answered = time.monotonic() - start

    def memory_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024

    def stop(self, kill=False):
        """Asks the server to stop, or kills it; waits until it is gone."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Measured:
    """What a run has found."""

    def __init__(self):
        self.calls = {}  # (what, concurrency) to the reports of `polynym bench`, one a round
        self.figures = {}  # the name of a figure to its values, one a round

    def note(self, name, figure):
        self.figures.setdefault(name, []).append(figure)

    def median(self, name, concurrency, field="calls_per_second"):
        return statistics.median(report[field] for report in self.calls[name, concurrency])

    def ratios(self, over, under, field="calls_per_second", under_field=None):
        """The ratio of two measurements in each round; each is a name and a concurrency."""
        pairs = zip(self.calls[over], self.calls[under])
        return [a[field] / b[under_field or field] for a, b in pairs]


class Run(Measured):
    """Where a run keeps its things, and how it calls its servers."""

    def __init__(self, options, folder, polynym, store):
        super().__init__()
        self.options, self.polynym, self.store = options, polynym, store
        self.log = open(Path(folder) / "server.log", "w+")

    def read_log(self):
        self.log.seek(0)
        return self.log.read()[-4000:]

    def bench_command(self, server, mode, concurrency, duration=None, warmup=None, loaded=True):
        options = self.options
        flags = {
            "--server": server.address,
            "--concurrency": concurrency,
            "--duration": duration or options.duration,
            "--warmup": options.warmup if warmup is None else warmup,
            "--users": options.users,
            "--batch": 100,
        }
        flags = [str(part) for flag in flags.items() for part in flag]
        return [self.polynym, "bench", mode, "--json", *flags, *(["--loaded"] if loaded else [])]

    def bench(self, server, mode, concurrency, **more):
        command = self.bench_command(server, mode, concurrency, **more)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        report = json.loads(done.stdout) if done.returncode == 0 else {}
        if not report or report["errors"] or report["wrong"]:
            sys.exit(f"{' '.join(command)} failed: {report}; the server's log:\n{self.read_log()}")
        return report

    def warm(self, server):
        """Makes sure that all users are there, which reads each of them: what has room in a cache is in it then."""
        self.bench(server, "resolve", 1, duration=1, warmup=0, loaded=False)

    def measure(self, server, name, mode, concurrency):
        report = self.bench(server, mode, concurrency)
        self.calls.setdefault((name, concurrency), []).append(report)
        say(f"  {name:24} at {concurrency:3}: {report['calls_per_second']:10,.0f} /s, p99 {report['p99_us']:8,.0f} us")
        return report


def say(text):
    print(text, file=sys.stderr, flush=True)


def arguments(description):
    """What every script here can be told."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=5, help="seconds of one measurement")
    parser.add_argument("--warmup", type=float, default=1, help="seconds before it")
    parser.add_argument("--quick", action="store_true", help="few users, two short rounds: whether it works, not how fast")
    parser.add_argument("--profile", default="release", help="the profile of Cargo that the programs are built with")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page and the plots go")
    return parser


def parse(parser, quick_users):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    options = parser.parse_args()
    if options.quick:
        options.users, options.rounds, options.duration, options.warmup = quick_users, 2, 1, 0.5
    return options


def build(profile):
    """Builds the program and tells where it is."""
    subprocess.run(["cargo", "build", "--profile", profile], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return ROOT / target / ("debug" if profile == "dev" else profile) / "polynym"
