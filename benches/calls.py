"""A client of gRPC that makes up its calls itself and costs little: raw frames of HTTP/2."""

import select
import socket
import struct
import sys
import time

from attacks import DATA, HEADERS, PING, PREFACE, RESOLVE, SETTINGS, WINDOW
from attacks import frame, message, text
from databases import processor_time

CALLERS = 64


def head(path):
    """The headers of a call, each as a literal that is not indexed."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x"}
    fields |= {"content-type": "application/grpc", "te": "trailers"}
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields.items())


class Connection:
    """A connection of HTTP/2. Calls are sent with `flush`."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head, self.stream, self.data, self.read = head(path), -1, b"", 0
        self.answered = set()
        window = frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30))
        self.out = PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 24)) + window

    def call(self, body):
        self.stream += 2
        self.out += frame(HEADERS, 4, self.stream, self.head)
        self.out += frame(DATA, 1, self.stream, message(body))

    def flush(self):
        self.socket.sendall(self.out)
        self.out = b""

    def receive(self):
        """Waits for data. Gives the number of calls that ended, and what their answers had."""
        arrived = self.socket.recv(1 << 18)
        if not arrived:
            sys.exit("the server closed the connection")
        data, at, ended, answers = self.data + arrived, 0, 0, []
        while len(data) - at >= 9:
            end = at + 9 + int.from_bytes(data[at:at + 3], "big")
            if len(data) < end:
                break
            kind, flags = data[at + 3], data[at + 4]
            if kind == DATA:
                answers.append(data[at + 9:end])
                self.answered.add(data[at + 5:at + 9])
                self.read += end - at
            elif kind == HEADERS and flags & 1:
                ended += 1
                # A refusal has headers alone.
                if data[at + 5:at + 9] not in self.answered:
                    sys.exit("a call failed")
                self.answered.remove(data[at + 5:at + 9])
            elif kind == PING and not flags & 1:
                self.out += frame(PING, 1, 0, data[at + 9:end])
            elif kind == SETTINGS and not flags & 1:
                self.out += frame(SETTINGS, 1, 0)
            at = end
        self.data = data[at:]
        if self.read > 1 << 28:
            self.out += frame(WINDOW, 0, 0, struct.pack(">I", self.read))
            self.read = 0
        return ended, answers

    def one(self, body):
        """Makes one call, and gives the users in its answer and their bytes."""
        self.call(body)
        self.flush()
        parts, ended = [], 0
        while not ended:
            ended, more = self.receive()
            parts += more
            if self.out:
                self.flush()
        return b"".join(parts)[5:]


def entries(answer, tag):
    """The number of fields of this tag in a message all of whose fields have a length."""
    at, count = 0, 0
    while at < len(answer):
        count += answer[at] >> 3 == tag
        at, size, shift = at + 1, 0, 0
        while True:
            size |= (answer[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if answer[at - 1] < 128:
                break
        at += size
    return count


def drive(port, bodies, seconds, warmup=0.5, path=RESOLVE):
    """By 64 callers on four connections: calls a second, and µs of the servers for each."""
    lines = [Connection(port, path) for _ in range(4)]
    bodies = iter(bodies)
    for n in range(CALLERS):
        lines[n % 4].call(next(bodies))
    done, start, used = 0, time.perf_counter() + warmup, None
    while (now := time.perf_counter()) < start + seconds:
        for one in lines:
            if one.out:
                one.flush()
        for ready in select.select([one.socket for one in lines], [], [])[0]:
            one = next(one for one in lines if one.socket is ready)
            ended, _ = one.receive()
            if now >= start:
                used = used or processor_time()
                done += ended
            for _ in range(ended):
                one.call(next(bodies))
    cost = (processor_time() - used) / done * 1e6
    for one in lines:
        one.socket.close()
    return done / seconds, cost
