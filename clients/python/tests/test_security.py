"""Encryption and tokens, against a real server."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from polynym import (
    AsyncClient,
    Client,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
    handle,
    v1,
)
from polynym.testing import find_program, serve


class Secured:
    """A server with TLS, and what its clients need."""

    def __init__(self, server: str, folder: Path) -> None:
        self.server = server
        self.ca = folder / "ca.pem"
        self.cert = folder / "client.pem"
        self.key = folder / "client.key"


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of callers. The token of each is in a file of its name."""
    folder = tmp_path_factory.mktemp("credentials")
    for role in ("resolver", "admin"):
        command = ["token", "create", role, "--role", role, "--tenants", "*"]
        command += ["--credentials", str(folder / "callers.toml")]
        printed = subprocess.run([find_program(), *command], check=True, capture_output=True)
        (folder / role).write_bytes(printed.stdout)
    return folder


@pytest.fixture(scope="module")
def plain(credentials: Path) -> Iterator[str]:
    """The port of a server without TLS that wants tokens."""
    with serve(arguments=["--credentials", str(credentials / "callers.toml")]) as server:
        yield server.grpc.rsplit(":", 1)[1]


@pytest.fixture(scope="module")
def secured(credentials: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A server with TLS that wants client certificates."""
    folder = tmp_path_factory.mktemp("tls")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    for name, identity in (("server", "localhost"), ("client", "client@example.com")):
        issued = ca.issue_cert(identity)
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
        for n, blob in enumerate(issued.cert_chain_pems):
            blob.write_to_path(folder / f"{name}.pem", append=n > 0)
    arguments = ["--credentials", str(credentials / "callers.toml")]
    arguments += ["--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server.key")]
    arguments += ["--tls-client-ca", str(folder / "ca.pem")]
    with serve(arguments=arguments) as server:
        port = server.grpc.rsplit(":", 1)[1]
        yield Secured(f"https://localhost:{port}", folder)


def test_a_token_tells_who_calls(plain: str, credentials: Path) -> None:
    server = f"http://127.0.0.1:{plain}"
    with Client(server) as client, pytest.raises(Unauthenticated):
        client.resolve(handle("joe"))
    with Client(server, token="pn_nonsense") as client, pytest.raises(Unauthenticated) as raised:
        client.resolve(handle("joe"))
    assert "pn_nonsense" not in str(raised.value)
    with Client(server, token_file=credentials / "resolver") as client:
        with pytest.raises(NotFound):
            client.resolve(handle("joe"))
        with pytest.raises(PermissionDenied):
            client.registry.CreateUser(v1.CreateUserRequest())
        with pytest.raises(PermissionDenied):
            next(client.search())


def test_a_token_is_sent_in_the_open_where_that_is_allowed(plain: str, credentials: Path) -> None:
    # 0.0.0.0 leads to this machine, but is no loopback address.
    server, token = f"http://0.0.0.0:{plain}", (credentials / "admin").read_text()
    with pytest.raises(ValueError, match="insecure=True"):
        Client(server, token=token)
    with Client(server, token=token, insecure=True) as client:
        assert list(client.search(tenant="default")) == []

    async def main() -> None:
        async with AsyncClient(server, token=token, insecure=True) as client:
            with pytest.raises(NotFound):
                await client.resolve(handle("joe"))

    asyncio.run(main())


def test_tls_with_a_client_certificate(secured: Secured, credentials: Path) -> None:
    files: dict[str, Any] = {"ca": secured.ca, "cert": secured.cert, "key": secured.key}
    token_file = credentials / "admin"
    with Client(secured.server, token_file=token_file, **files) as client:
        assert list(client.search()) == []

    async def main() -> None:
        async with AsyncClient(secured.server, token_file=token_file, **files) as client:
            with pytest.raises(NotFound):
                await client.resolve(handle("joe"))

    asyncio.run(main())


def test_the_authorities_of_the_system_are_trusted(
    secured: Secured, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(secured.ca))
    files: dict[str, Any] = {"cert": secured.cert, "key": secured.key}
    with Client(secured.server, token_file=credentials / "admin", **files) as client:
        assert list(client.search()) == []


def test_an_unknown_authority_is_not_trusted(secured: Secured) -> None:
    with Client(secured.server) as client, pytest.raises(Unavailable) as raised:
        client.resolve(handle("joe"))
    assert raised.value.reason == ""
