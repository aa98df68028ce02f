"""Deliveries, as a receiver sees them that checks signatures by the library of the standard."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from polynym import Client, handle, v1
from polynym.testing import serve

SECRETS = [
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
]

Message = tuple[dict[str, str], bytes]


@contextmanager
def receive() -> Iterator[tuple[str, queue.Queue[Message]]]:
    """Runs a receiver, and yields its URL and what it gets."""
    messages: queue.Queue[Message] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            messages.put((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", messages
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_signatures_are_those_of_standard_webhooks() -> None:
    with (
        receive() as (url, messages),
        serve(arguments=["--delivery-allow=127.0.0.0/8"]) as server,
        Client(server.address, timeout=60) as client,
    ):
        request = v1.CreateDeliveryRequest(delivery_id="hook", url=url, secrets=SECRETS)
        client.admin.CreateDelivery(request)
        name = "Zoë “Z” \U0001f600"
        identity = v1.Identity(identifier=handle("zoe"))
        user = v1.User(display_name=name, identities=[identity])
        user = client.registry.CreateUser(v1.CreateUserRequest(user=user)).user
        headers, body = messages.get(timeout=60)
        for secret in SECRETS:
            event = Webhook(secret).verify(body, headers)
            assert event["subject"] == user.user_id
            assert event["type"] == "dev.polynym.user_created"
            assert name in str(event["data"])
        with pytest.raises(WebhookVerificationError):
            Webhook("whsec_AAAA").verify(body, headers)
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRETS[0]).verify(body.replace(b"user_created", b"user_deleted"), headers)
