#!/usr/bin/env python3
"""Measures what a token and TLS cost: three servers of one build, in turns, on warm connections.

Needs `cargo build --release` and openssl. Prints the look-ups a second of each turn, and the best
of each server beside the best without either.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "target/release/polynym"


def certificate(folder):
    """Makes an authority and a certificate of it for 127.0.0.1."""
    run = lambda command: subprocess.run(command, shell=True, check=True, cwd=folder, stderr=subprocess.DEVNULL)
    new = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    run(f"{new} -x509 -keyout ca.key -out ca.pem -subj /CN=ca -days 2")
    run(f"{new} -keyout server.key -out request.pem -subj /CN=server")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    run(
        "openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial"
        " -out server.pem -days 2 -extfile names"
    )


def serve(folder, name, *arguments):
    """Starts a server on a free port, and returns its process and URL."""
    own = ["serve", "--listen", "127.0.0.1:0", "--create", "--store", f"embedded:{folder / name}", "--log", "error"]
    process = subprocess.Popen([PROGRAM, *own, *arguments], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().split()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--duration", type=float, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        certificate(folder)
        create = [PROGRAM, "token", "create", "bench", "--role", "admin", "--tenants", "*", "--credentials", folder / "c.toml"]
        (folder / "bench.token").write_bytes(subprocess.run(create, check=True, capture_output=True).stdout)
        ways = {
            "plain": ([], []),
            "token": (["--credentials", folder / "c.toml"], ["--token-file", folder / "bench.token"]),
            "tls": (["--tls-cert", folder / "server.pem", "--tls-key", folder / "server.key"], ["--ca", folder / "ca.pem"]),
        }
        servers = {way: serve(folder, way, *arguments) for way, (arguments, _) in ways.items()}
        best = dict.fromkeys(ways, 0)
        try:
            for turn in range(options.rounds + 1):
                for way, (_, client) in ways.items():
                    measured = 1 if turn == 0 else options.duration
                    command = [PROGRAM, "bench", "resolve", "--server", servers[way][1], *client]
                    command += ["--users", str(options.users), "--concurrency", "64", "--duration", str(measured), "--json"]
                    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                    rate = json.loads(answer)["calls_per_second"]
                    if turn > 0:
                        best[way] = max(best[way], rate)
                        print(f"turn {turn} {way:5} {rate:10,.0f}", flush=True)
        finally:
            for process, _ in servers.values():
                process.terminate()
                process.wait()
    for way, rate in best.items():
        print(f"best   {way:5} {rate:10,.0f}  {rate / best['plain']:.3f}")


if __name__ == "__main__":
    main()
