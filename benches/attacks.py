#!/usr/bin/env python3
"""Attacks a server from one core, and measures what that costs a healthy caller beside it.

Each attack runs in a process of its own on one core, with raw HTTP/2 frames. The healthy caller's
p99 is compared with its p99 beside a process that merely burns that core, in the same round; the
median of the rounds counts. Also compares by time what a refusal must not tell apart: tenants that
exist and those that do not, tokens whose id is known and those whose id is not.

Needs `cargo build --release` and openssl.
"""

import argparse
import json
import multiprocessing
import os
import random
import socket
import statistics
import struct
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from access import PROGRAM, certificate

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
RESOLVE = "/polynym.v1.DirectoryService/ResolveIdentity"
BATCH = "/polynym.v1.DirectoryService/BatchResolveIdentities"
GET = "/polynym.v1.DirectoryService/GetUser"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    """A string of HPACK (RFC 7541, section 5.2) without Huffman coding."""
    length = len(value)
    head = bytes([length]) if length < 127 else bytes([127, (length - 127) % 128 | 128, (length - 127) // 128])
    return head + value.encode()


def head(path, token):
    """The headers of a call, each as a literal that is not indexed."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x"}
    fields |= {"content-type": "application/grpc", "te": "trailers", "authorization": f"Bearer {token}"}
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields.items())


def message(body):
    return b"\0" + struct.pack(">I", len(body)) + body


def handle(name):
    """An Identifier with a handle."""
    return b"\x12" + bytes([len(name)]) + name.encode()


def field(tag, body):
    size = len(body)
    return bytes([tag << 3 | 2]) + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + body


# What the present attack has sent, and how often its connection was closed.
COUNTS = multiprocessing.Array("q", 2, lock=False)


class Connection:
    def __init__(self, port, settings=b""):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))
        self.stream = -1

    def send(self, data):
        self.socket.sendall(data)

    def next(self):
        self.stream += 2
        return self.stream


def flood(port, piece, batch=200):
    """Sends what `piece` makes for a connection, again and again, and reconnects when closed."""
    sent, closed = 0, 0
    while True:
        try:
            connection = Connection(port)
            connection.socket.setblocking(False)
            while True:
                data = b"".join(piece(connection) for _ in range(batch))
                while data:
                    try:
                        data = data[connection.socket.send(data):]
                    except BlockingIOError:
                        pass
                    try:
                        if not connection.socket.recv(1 << 16):
                            raise ConnectionResetError
                    except BlockingIOError:
                        pass
                sent += batch
                COUNTS[:] = [sent, closed]
        except OSError:
            closed += 1


def rapid_reset(port, token):
    block = head(RESOLVE, token)

    def piece(connection):
        stream = connection.next()
        return frame(HEADERS, 4, stream, block) + frame(RST, 0, stream, struct.pack(">I", 8))

    flood(port, piece)


def continuation(port, token):
    def piece(connection):
        if connection.stream < 0:
            return frame(HEADERS, 0, connection.next(), head(RESOLVE, token))
        return frame(CONTINUATION, 0, connection.stream, b"\0" + text("a" * 50) + text("b" * 50))

    flood(port, piece)


def pings(port, _):
    flood(port, lambda connection: frame(PING, 0, 0, b"12345678"))


def settings(port, _):
    flood(port, lambda connection: frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)))


def windows(port, _):
    flood(port, lambda connection: frame(WINDOW, 0, 0, struct.pack(">I", 1)))


def empty_data(port, token):
    def piece(connection):
        if connection.stream < 0:
            return frame(HEADERS, 4, connection.next(), head(RESOLVE, token))
        return frame(DATA, 0, connection.stream)

    flood(port, piece)


def slow_reading(port, token):
    """Full answers that nobody reads, on 50 connections of 100 streams; a new one for each that is closed."""
    call = message(b"".join(field(2, handle("joe")) for _ in range(200)))

    def held():
        connection = Connection(port, struct.pack(">HI", 4, 0))
        for _ in range(100):
            stream = connection.next()
            connection.send(frame(HEADERS, 4, stream, head(BATCH, token)) + frame(DATA, 1, stream, call))
        connection.socket.setblocking(False)
        return connection

    connections = []
    while True:
        connections = [one for one in connections if is_open(one.socket)]
        while len(connections) < 50:
            try:
                connections.append(held())
            except OSError:
                COUNTS[1] += 1
        time.sleep(0.1)


def is_open(one):
    """Whether a socket that does not block is open; reads what is there."""
    try:
        return bool(one.recv(1 << 16))
    except BlockingIOError:
        return True
    except OSError:
        return False


def slow_writing(port, token):
    """Messages that come byte by byte, on 50 connections of 100 streams."""
    connections = [Connection(port) for _ in range(50)]
    for connection in connections:
        for _ in range(100):
            stream = connection.next()
            connection.send(frame(HEADERS, 4, stream, head(RESOLVE, token)))
    while True:
        for n, connection in enumerate(connections):
            try:
                for stream in range(1, 200, 2):
                    connection.send(frame(DATA, 0, stream, b"\0"))
            except OSError:
                connections[n] = Connection(port)
        time.sleep(0.5)


def silent(port, _):
    """1,000 connections that say nothing; with TLS, handshakes that never end."""
    sockets = []
    while True:
        while len(sockets) < 1_000:
            sockets.append(socket.create_connection(("127.0.0.1", port)))
        time.sleep(0.2)
        for one in sockets:
            one.setblocking(False)
        sockets = [one for one in sockets if is_open(one)]


def wrong_tokens(port, _):
    """Calls with random tokens, on connections of 100 calls each."""
    def piece(connection):
        stream = connection.next()
        token = f"pn_{random.randrange(10**9)}_{'A' * 43}"
        return frame(HEADERS, 5, stream, head(RESOLVE, token))

    flood(port, piece, 20)


def burn(_port, _token):
    while True:
        pass


ATTACKS = {
    "rapid reset": rapid_reset,
    "CONTINUATION flood": continuation,
    "PING flood": pings,
    "SETTINGS flood": settings,
    "WINDOW_UPDATE flood": windows,
    "empty DATA flood": empty_data,
    "slow reading": slow_reading,
    "slow writing": slow_writing,
    "1,000 silent connections": silent,
    "calls with wrong tokens": wrong_tokens,
    "1,000 handshakes that never end": silent,
}


def memory(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Server:
    def __init__(self, folder, name, *arguments):
        own = ["serve", "--listen", "127.0.0.1:0", "--sample", "--log", "off", "--call-timeout", "2s"]
        self.process = subprocess.Popen([PROGRAM, *own, *arguments], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])
        self.folder = folder

    def healthy(self, duration, client):
        """The p99 of a healthy caller in microseconds, and its calls a second."""
        command = [PROGRAM, "bench", "resolve", "--server", self.url, *client, "--users", "1000", "--json"]
        command += ["--concurrency", "4", "--connections", "2", "--duration", str(duration), "--warmup", "0.5"]
        done = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
        return done

    def beside(self, attack, token, duration, client):
        """The healthy caller beside an attack: what it measured, and the server's growth in MiB."""
        def run():
            os.sched_setaffinity(0, {os.cpu_count() - 1})
            attack(self.port, token)

        before = memory(self.process)
        process = multiprocessing.Process(target=run, daemon=True)
        process.start()
        try:
            done = self.healthy(duration, client)
            return done, memory(self.process) - before
        finally:
            process.kill()
            process.join()


def quantiles(values):
    values = sorted(values)
    return [values[int(share * (len(values) - 1))] for share in (0.1, 0.5, 0.9, 0.99)]


def difference(one, other):
    """The statistic of Kolmogorov and Smirnov for two samples: the largest distance of their distributions."""
    one, other = sorted(one), sorted(other)
    i = j = 0
    most = 0.0
    while i < len(one) and j < len(other):
        value = min(one[i], other[j])
        while i < len(one) and one[i] == value:
            i += 1
        while j < len(other) and other[j] == value:
            j += 1
        most = max(most, abs(i / len(one) - j / len(other)))
    return most


def calls(port, ways, count):
    """The times of calls of two kinds in random order, one after the other, in microseconds."""
    connection = Connection(port)
    times = {way: [] for way in ways}
    order = list(ways) * count
    random.shuffle(order)
    for way in order:
        path, token, body = ways[way]
        stream = connection.next()
        data = frame(HEADERS, 4, stream, head(path, token())) + frame(DATA, 1, stream, message(body))
        begun = time.perf_counter_ns()
        connection.send(data)
        answer = connection.socket.recv(1 << 16)
        while not any_end(answer, stream):
            answer += connection.socket.recv(1 << 16)
        times[way].append((time.perf_counter_ns() - begun) // 1_000)
        if stream > 150_000:
            connection = Connection(port)
    return times


def many_calls(port, ways, count):
    """The same over 50 connections at once: refusals of wrong tokens are delayed."""
    times = {way: [] for way in ways}
    with ThreadPoolExecutor(50) as pool:
        for part in pool.map(lambda _: calls(port, ways, count // 50), range(50)):
            for way, values in part.items():
                times[way] += values
    return times


def any_end(answer, stream):
    """Whether the frames have the end of the stream."""
    at = 0
    while at + 9 <= len(answer):
        length = int.from_bytes(answer[at:at + 3], "big")
        kind, flags = answer[at + 3], answer[at + 4]
        number = int.from_bytes(answer[at + 5:at + 9], "big")
        if number == stream and kind in (DATA, HEADERS) and flags & 1 and at + 9 + length <= len(answer):
            return True
        at += 9 + length
    return False


def compare(server, folder, count):
    """Prints what refusals that must be alike take."""
    token = create(folder, "narrow", "registrar", "eu-*")
    known = token.split("_")[1]
    user = field(2, b"20be0ffc-314a-bd53-7a50-013a65ca76d2")
    secret = lambda: "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=43))
    pairs = {
        "a tenant of others": {"exists": (GET, lambda: token, field(1, b"default") + user), "does not": (GET, lambda: token, field(1, b"nothing") + user)},
        "a wrong token": {"known id": (GET, lambda: f"pn_{known}_{secret()}", user), "unknown id": (GET, lambda: f"pn_{'x' * len(known)}_{secret()}", user)},
    }
    # The server takes the new token.
    time.sleep(6)
    limit = 1.63 * (2 / count) ** 0.5
    print(f"\nmicroseconds of {count} calls each; distributions differ at 1 % beyond {limit:.4f}")
    for name, ways in pairs.items():
        times = many_calls(server.port, ways, count)
        for way, values in times.items():
            p10, p50, p90, p99 = quantiles(values)
            print(f"{name}, {way:<12} p10 {p10:>5} p50 {p50:>5} p90 {p90:>5} p99 {p99:>5}")
        print(f"{name}: difference {difference(*times.values()):.4f}")


def create(folder, name, role, tenants):
    command = [PROGRAM, "token", "create", name, "--role", role, "--tenants", tenants, "--credentials", folder / "c.toml"]
    token = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    (folder / f"{name}.token").write_text(token)
    return token


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--attacker-calls", type=int, help="the attacker's rate of calls; any number unless given")
    parser.add_argument("--only", default="", help="attacks with this text in their names")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        certificate(folder)
        create(folder, "healthy", "admin", "*")
        attacker = create(folder, "attacker", "resolver", "default")
        if options.attacker_calls:
            with open(folder / "c.toml", "a") as file:
                file.write(f"rate = {{ calls = {options.attacker_calls} }}\n")
        client = ["--token-file", folder / "healthy.token"]
        credentials = ["--credentials", folder / "c.toml"]
        plain = Server(folder, "plain", *credentials)
        tls = Server(folder, "tls", *credentials, "--tls-cert", folder / "server.pem", "--tls-key", folder / "server.key")
        servers = {name: tls if "handshakes" in name else plain for name in ATTACKS}
        clients = {plain: client, tls: [*client, "--ca", folder / "ca.pem"]}
        try:
            for server in (plain, tls):
                server.healthy(1, clients[server])
            chosen = [name for name in ATTACKS if options.only in name]
            print(f"{'attack':<34}{'p99 us':>8}{'burned':>8}{'ratio':>7}{'MiB':>7}{'sent':>12}{'closed':>8}")
            for name in chosen:
                ratios, growth = [], []
                for _ in range(options.rounds):
                    server = servers[name]
                    beside = lambda attack: server.beside(attack, attacker, options.duration, clients[server])
                    burned = p99(beside(burn)[0])
                    COUNTS[:] = [0, 0]
                    attacked, more = beside(ATTACKS[name])
                    ratios.append((p99(attacked) / burned, p99(attacked), burned))
                    growth.append(more)
                ratio, attacked, burned = statistics.median_low(ratios)
                sent, closed = COUNTS
                print(f"{name:<34}{attacked:>8.0f}{burned:>8.0f}{ratio:>7.2f}{max(growth):>7.0f}{sent:>12}{closed:>8}", flush=True)
            if not options.only:
                compare(plain, folder, options.calls)
        finally:
            for server in (plain, tls):
                server.process.terminate()


def p99(done):
    return done["p99_us"]


if __name__ == "__main__":
    main()
