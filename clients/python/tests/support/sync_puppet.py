"""Performs the steps of the scenarios with `polynym.Client`."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import steps
from google.protobuf.message import Message
from steps import Step, ok, parse

import polynym
from polynym import PolynymError, v1


class SyncPuppet:
    """Takes one step after another."""

    def __init__(self) -> None:
        self.client: polynym.Client | None = None
        self.watch: polynym.Watch | None = None
        self.watched: queue.Queue[Step] = queue.Queue()
        self.kept = steps.Kept()
        self.loops: list[threading.Thread] = []

    def take(self, step: Step) -> Step:
        """Performs a step, and returns its answer."""
        return {"id": step["id"], **getattr(self, f"on_{step['op']}")(step)}

    def on_connect(self, step: Step) -> Step:
        """Replaces the client."""
        self.close()
        self.client = polynym.Client(**steps.connection(step))
        return {}

    def on_close(self, step: Step) -> Step:
        """Closes the client."""
        self.close()
        return {}

    def close(self) -> None:
        """Closes the client."""
        if self.watch is not None:
            self.watch.close()
        if self.client is not None:
            self.client.close()

    def on_call(self, step: Step) -> Step:
        """Calls any method."""
        method, request = steps.method_of(self.client, step)
        return attempt(lambda: method(request, timeout=steps.seconds(step)))

    def on_resolve(self, step: Step) -> Step:
        """Looks one identifier up."""
        return self.resolve(step["request"], steps.seconds(step))

    def resolve(self, text: str, timeout: float | None) -> Step:
        """Looks one identifier up."""
        assert self.client
        client, request = self.client, parse(v1.ResolveIdentityRequest, text)
        options = steps.options(request)
        return attempt(lambda: client.resolve(request.identifier, **options, timeout=timeout))

    def on_resolve_concurrently(self, step: Step) -> Step:
        """Looks identifiers up, each in a thread."""
        requests = step["requests"]
        timeouts = step.get("timeouts_ms") or [None] * len(requests)
        with ThreadPoolExecutor(len(requests)) as threads:
            results = threads.map(self.resolve, requests, map(steps.to_seconds, timeouts))
            return {"results": list(results)}

    def on_keep_resolving(self, step: Step) -> Step:
        """Begins loops of look-ups."""
        self.kept = steps.Kept()
        kept = self.kept

        def loop() -> None:
            while not kept.is_over:
                kept.count(self.resolve(step["request"], None))

        self.loops = [threading.Thread(target=loop) for _ in range(steps.LOOPS)]
        for thread in self.loops:
            thread.start()
        return {}

    def on_kept(self, step: Step) -> Step:
        """Ends the loops."""
        self.kept.is_over = True
        for thread in self.loops:
            thread.join()
        return self.kept.answer()

    def on_get_or_create(self, step: Step) -> Step:
        """Gets or creates a user, in so many threads at once."""
        assert self.client
        client = self.client
        user = parse(v1.CreateUserRequest, step["request"]).user
        identifier = user.identities[0].identifier

        def get_or_create(_: int) -> Step:
            try:
                return steps.got(client.get_or_create(identifier, user))
            except PolynymError as error:
                return steps.failed(error)

        count = step.get("concurrency") or 1
        with ThreadPoolExecutor(count) as threads:
            return {"results": list(threads.map(get_or_create, range(count)))}

    def on_resolve_many(self, step: Step) -> Step:
        """Looks many identifiers up."""
        assert self.client
        request = parse(v1.BatchResolveIdentitiesRequest, step["request"])
        answers = self.client.resolve_many(request.identifiers, **steps.options(request))
        return {"results": [steps.found(answer) for answer in answers]}

    def on_search(self, step: Step) -> Step:
        """Searches over all pages."""
        assert self.client
        request = parse(v1.SearchUsersRequest, step["request"])
        return collect(self.client.search(**steps.search_options(request)))

    def on_history(self, step: Step) -> Step:
        """Lists a history over all pages."""
        assert self.client
        request = parse(v1.ListHistoryRequest, step["request"])
        return collect(self.client.history(**steps.history_options(request)))

    def on_watch(self, step: Step) -> Step:
        """Begins a watch in a thread."""
        assert self.client
        request = parse(v1.WatchRequest, step["request"])
        watch = self.client.watch(**steps.watch_options(request))
        try:
            watch.__enter__()
        except PolynymError as error:
            return steps.failed(error)
        self.watch, self.watched = watch, queue.Queue()
        threading.Thread(target=follow, args=(watch, self.watched), daemon=True).start()
        return {}

    def on_watched(self, step: Step) -> Step:
        """Waits for the events of the watch, and ends it."""
        assert self.watch
        deadline = time.monotonic() + step["timeout_ms"] / 1000
        results: list[Step] = []
        while len(results) < step["count"]:
            try:
                results.append(self.watched.get(timeout=max(deadline - time.monotonic(), 0)))
            except queue.Empty:
                break
        while not self.watched.empty():
            results.append(self.watched.get())
        self.watch.close()
        return {"results": results}


def attempt(call: Callable[[], Message]) -> Step:
    """Returns the answer of a call."""
    try:
        return ok(call())
    except PolynymError as error:
        return steps.failed(error)


def collect(messages: Iterable[Message]) -> Step:
    """Returns the answer with all messages, and an error at the end if there is one."""
    results = []
    try:
        for message in messages:
            results.append(ok(message))
    except PolynymError as error:
        results.append(steps.failed(error))
    return {"results": results}


def follow(watch: polynym.Watch, watched: queue.Queue[Any]) -> None:
    """Queues the events of a watch."""
    try:
        for event, _ in watch:
            watched.put(ok(event))
    except PolynymError as error:
        watched.put(steps.failed(error))
