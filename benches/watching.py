#!/usr/bin/env python3
"""Measures how fast a server sends a backlog of events to many watchers at once, on the embedded store.

    python3 benches/watching.py

Makes events with `polynym bench link`, then has each of ten watchers begin before the first of them,
and counts what arrives until each has all. Counts the processor time of the server, too: the client,
a reader of raw HTTP/2 frames, has the same processors. Needs a release build.
"""

import argparse
import os
import select
import socket
import struct
import subprocess
import tempfile
import time

from access import PROGRAM
from attacks import DATA, HEADERS, PING, PREFACE, SETTINGS, WINDOW, field, frame, message
from calls import head
from databases import processor_time
from search import server

WATCH = "/polynym.v1.DirectoryService/Watch"
TENANT = "bench"


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


class Watcher:
    """A watch on a connection of its own."""

    def __init__(self, port, token=b""):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.data, self.body, self.events, self.token = b"", b"", 0, token
        request = field(1, TENANT.encode()) + (field(4, token) if token else b"")
        window = frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30))
        settings = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 24))
        call = frame(HEADERS, 4, 1, head(WATCH)) + frame(DATA, 0, 1, message(request)) + frame(DATA, 1, 1)
        self.socket.sendall(PREFACE + settings + window + call)

    def receive(self):
        """Reads what has arrived, and counts the events."""
        data = self.data + self.socket.recv(1 << 20)
        at, out = 0, b""
        while len(data) - at >= 9 and len(data) >= at + 9 + int.from_bytes(data[at:at + 3], "big"):
            end = at + 9 + int.from_bytes(data[at:at + 3], "big")
            kind, flags = data[at + 3], data[at + 4]
            if kind == DATA:
                self.body += data[at + 9:end]
                size = struct.pack(">I", end - at - 9)
                out += frame(WINDOW, 0, 0, size) + frame(WINDOW, 0, 1, size) if end - at > 9 else b""
            elif kind == PING and not flags & 1:
                out += frame(PING, 1, 0, data[at + 9:end])
            elif kind == SETTINGS and not flags & 1:
                out += frame(SETTINGS, 1, 0)
            at = end
        self.data = data[at:]
        if out:
            self.socket.sendall(out)
        self.count()

    def count(self):
        at, body = 0, self.body
        while len(body) - at >= 5 and len(body) >= at + 5 + int.from_bytes(body[at + 1:at + 5], "big"):
            size = int.from_bytes(body[at + 1:at + 5], "big")
            self.events += body[at + 5] == 0x0A
            if body[at + 5] != 0x0A and not self.token:
                length, start = varint(body, at + 6)
                length, start = varint(body, start + length + 1)
                self.token = body[start:start + length]
            at += 5 + size
        self.body = body[at:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", type=int, default=10)
    parser.add_argument("--duration", type=int, default=5, help="seconds in which events are made")
    parser.add_argument("--program", default=PROGRAM)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="polynym-watching-") as folder:
        with server(options, folder, f"embedded:{folder}/store", "--create") as port:
            bench = [options.program, "bench", "link", "--server", f"http://127.0.0.1:{port}", "--users", "1000"]
            run = lambda seconds: subprocess.run([*bench, "--duration", str(seconds)], check=True, stdout=subprocess.DEVNULL)
            run(1)
            first = Watcher(port)
            while not first.token:
                first.receive()
            run(options.duration)
            # All that come within a second after the last ones.
            while select.select([first.socket], [], [], 1)[0]:
                first.receive()
            used, start = processor_time(), time.perf_counter()
            watchers = [Watcher(port, first.token) for _ in range(options.watchers)]
            while any(one.events < first.events for one in watchers):
                for ready in select.select([one.socket for one in watchers], [], [], 10)[0]:
                    next(one for one in watchers if one.socket is ready).receive()
            took, used = time.perf_counter() - start, processor_time() - used
    each = first.events / took
    print(f"{first.events:,} events to each of {options.watchers} watchers in {took:.2f} s: {each:,.0f} a second to each, "
          f"{used / first.events / options.watchers * 1e6:.1f} µs of the server for each")
    print("load average at the end: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
