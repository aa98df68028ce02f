"""Containers as processes of this machine, for scripts/test-deploy: their addresses, files and commands."""

import atexit
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from forms import Image

# What there is for a step that has no limit of its own, in seconds.
LIMIT = 120

IMAGE = Image()
WORK = pathlib.Path(tempfile.mkdtemp(prefix="polynym-deploy-"))
PORTS = {}
PROCESSES = []


class Failure(Exception):
    """A sentence that says what differs from what deploy/ promises."""


def port(container, number):
    """The port of this machine for one of a container. It is bound and does not listen: nobody else gets it."""
    if (container, number) not in PORTS:
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        PORTS[container, number] = held
    return PORTS[container, number].getsockname()[1]


def must(where, command, variables):
    """Runs a command that must succeed, and returns its output."""
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT)
    if done.returncode:
        words = " ".join(map(str, command[1:]))
        raise Failure(f"{where}: polynym {words} ends with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class Container:
    """The files and the addresses of a container, without the container."""

    # The program that runs in all of them, and the URI of the database that those of MongoDB get.
    program = store = None

    def __init__(self, name, variables, mounts, others=()):
        """`mounts` has a file or a folder of this machine for each path, `others` the names of other containers."""
        self.name, self.folder, self.mounts = name, WORK / name, mounts
        self.addresses = re.compile(rf"(?<![\w.])({'|'.join(['0.0.0.0', '127.0.0.1', *others])}):(\d+)")
        for path, source in mounts.items():
            for file in [source] if source.is_file() else filter(pathlib.Path.is_file, source.rglob("*")):
                copy = self.local_path(path) / file.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(self.local(file.read_text()))
            if source.is_dir():
                self.local_path(path).mkdir(parents=True, exist_ok=True)
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        variables = {**IMAGE.variables, **variables}
        self.variables = {key: self.local(value) for key, value in variables.items()}
        self.variables.update(PATH=os.environ["PATH"], TMPDIR=str(self.folder / "tmp"))

    def local_path(self, path):
        return self.folder / path.removeprefix("/")

    def local(self, text):
        """A text of the container, for a process of this machine."""
        paths = "|".join(re.escape(path) for path in sorted(self.mounts, key=len, reverse=True))
        if paths:
            text = re.sub(rf"(?<![\w./-])({paths})(?![\w-])", lambda found: str(self.local_path(found[1])), text)
        text = self.addresses.sub(self.local_address, text)
        # The servers of the tests have no users. tests/mongo/credentials has those of docs/mongodb.md.
        return re.sub(r"mongodb://[^'\"\s]+", self.store, text)

    def local_address(self, found):
        own = found[1] in ("0.0.0.0", "127.0.0.1")
        number = port(self.name if own else found[1], int(found[2]))
        # A server does not encrypt the pages for operators on a loopback address.
        return f"{found[1] if own else '127.0.0.1'}:{number}"

    def run(self, words):
        """Runs a command of the program to its end, which must be a success."""
        return must(self.name, [self.program, *map(self.local, words)], self.variables)

    def start(self, words, program=None):
        return Process(self.name, [program or self.program, *map(self.local, words)], self.variables)


class Process:
    def __init__(self, name, command, variables, **options):
        self.name, self.log = name, WORK / f"{name}.log"
        with open(self.log, "w") as log:
            self.child = subprocess.Popen(command, env=variables, start_new_session=True, stderr=log,
                                          **{"stdin": subprocess.DEVNULL, "stdout": log, **options})
        PROCESSES.append(self)

    def last_lines(self):
        return "\n".join(self.log.read_text().splitlines()[-15:])

    def until(self, condition, limit, what):
        """Waits until this is true. A process that has ended fails at once."""
        deadline = time.monotonic() + limit
        while not condition():
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"{self.name}: not {what} in {limit} s:\n{self.last_lines()}")
            time.sleep(0.1)

    def stop(self, limit):
        """Ends it as an engine does. It must end by itself, with status 0, in its time."""
        self.child.terminate()
        self.ended(limit)

    def ended(self, limit):
        try:
            status = self.child.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name}: still runs {limit} s after SIGTERM") from None
        if status:
            raise Failure(f"{self.name}: stops with status {status}:\n{self.last_lines()}")

    def clear(self):
        """Leaves nothing of it, whatever has happened."""
        if self.child.poll() is None:
            self.child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(20)
            self.child.kill()
            self.child.wait()


@atexit.register
def clear():
    for process in reversed(PROCESSES):
        process.clear()
    shutil.rmtree(WORK, ignore_errors=True)


def status_of(url, **options):
    """The status of a page, or none if nobody answers."""
    try:
        return urllib.request.urlopen(url, timeout=5, **options).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None
