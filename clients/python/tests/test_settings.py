"""Where a client connects, and what it sends there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from polynym import AsyncClient, Client
from polynym._settings import (
    Address,
    Settings,
    TokenFile,
    parse_address,
    parse_addresses,
    system_roots,
)


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("http://127.0.0.1:7171", Address("127.0.0.1", 7171, is_tls=False)),
        ("https://users.example.com:7171", Address("users.example.com", 7171, is_tls=True)),
        ("https://users.example.com/", Address("users.example.com", 443, is_tls=True)),
        ("http://users", Address("users", 80, is_tls=False)),
        ("localhost:7171", Address("localhost", 7171, is_tls=False)),
        ("127.8.8.8:7171", Address("127.8.8.8", 7171, is_tls=False)),
        ("[::1]:7171", Address("::1", 7171, is_tls=False)),
        ("users.example.com:7171", Address("users.example.com", 7171, is_tls=True)),
        ("10.0.0.1:7171", Address("10.0.0.1", 7171, is_tls=True)),
    ],
)
def test_addresses(server: str, address: Address) -> None:
    assert parse_address(server) == address


@pytest.mark.parametrize("server", ["", "users", "ftp://users", "http://", "http://a/b"])
def test_other_addresses_are_refused(server: str) -> None:
    with pytest.raises(ValueError, match="server"):
        Client(server)


@pytest.mark.parametrize("server", ["http://joe@a", "joe:secret@a:1", "https://joe:secret@a:x"])
def test_user_information_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match="user information") as raised:
        Client(server)
    assert "joe" not in str(raised.value)


@pytest.mark.parametrize(
    ("server", "port"),
    [
        ("127.0.0.1:port", "port"),
        (":99999", "99999"),
        ("http://a:65536", "65536"),
        ("[::1]:0", "0"),
        ("a:-1", "-1"),
        ("https://a:", ""),
    ],
)
def test_other_ports_are_refused(server: str, port: str) -> None:
    with pytest.raises(ValueError, match="server") as raised:
        Client(server)
    text = f'the port of a server must be a number from 1 to 65535, not "{port}"'
    assert str(raised.value) == text


def test_other_settings_are_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    for make in (Client, AsyncClient):
        for timeout in (0, -1, float("nan")):
            with pytest.raises(ValueError, match="the timeout must be greater than zero"):
                make(timeout=timeout)
        with pytest.raises(ValueError, match="retries"):
            make(retries=-1)
        with pytest.raises(ValueError, match="first_wait"):
            make(first_wait=2)
        with pytest.raises(ValueError, match="token and token_file exclude each other"):
            make(token="secret", token_file=token)
        with pytest.raises(ValueError, match="the list of servers is empty"):
            make([])


def test_servers_are_a_list() -> None:
    two = [Address("a", 1, is_tls=True), Address("b", 443, is_tls=True)]
    assert parse_addresses("https://a:1, https://b") == two
    assert parse_addresses(["https://a:1", "https://b", "https://a:1"]) == two
    with pytest.raises(ValueError, match="all with TLS"):
        parse_addresses("https://a:1,http://b:1")
    with pytest.raises(ValueError, match="empty"):
        parse_addresses([])


def test_targets_of_grpc() -> None:
    assert parse_address("[::1]:7171").target == "dns:///[::1]:7171"
    assert parse_address("http://users:1").target == "dns:///users:1"


def test_the_environment_has_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Settings().checked_addresses(None) == [Address("127.0.0.1", 7171, is_tls=False)]
    assert Settings().token_source()() is None
    file = tmp_path / "token"
    file.write_text("secret\n")
    monkeypatch.setenv("POLYNYM_SERVER", "https://users:1")
    monkeypatch.setenv("POLYNYM_TOKEN_FILE", str(file))
    assert Settings().checked_addresses("secret")[0].host == "users"
    assert Settings().token_source()() == "secret"
    assert Settings(token="other").token_source()() == "other"
    monkeypatch.setenv("POLYNYM_CA", str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        Settings().certificates()


def test_the_system_trusts_a_file_or_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing"))
    (tmp_path / "0a1b2c3d.0").write_bytes(b"first")
    (tmp_path / "0a1b2c3d.1").write_bytes(b"second")
    (tmp_path / "README").write_bytes(b"none")
    assert system_roots() == b"first\nsecond"
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "0a1b2c3d.0"))
    assert system_roots() == b"first"


def test_a_token_is_not_sent_in_the_open() -> None:
    with pytest.raises(ValueError, match="without encryption") as raised:
        Client("http://users:7171", token="secret")
    assert "secret" not in str(raised.value)
    Client("http://users:7171", token="secret", insecure=True).close()
    Client("http://users:7171").close()
    Client("http://localhost:7171", token="secret").close()


@pytest.mark.parametrize("token", ["", "two words", "umlaut-ü", "line\nline"])
def test_malformed_tokens_are_refused(token: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII") as raised:
        Client(token=token)
    assert not token or token not in str(raised.value)


def test_a_token_file_is_read_again_when_it_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    token = TokenFile(file)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def replace(text: str) -> None:
        new = tmp_path / "new"
        new.write_text(text)
        os.replace(new, file)

    replace("second")
    assert token() == "first"
    now += 1.5
    assert token() == "second"
    file.unlink()
    now += 1.5
    assert token() == "second"
    replace("not one word")
    now += 1.5
    assert token() == "second"
    replace("third")
    now += 1.5
    assert token() == "third"


def test_a_missing_token_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Client(token_file=tmp_path / "missing")


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="together"):
        Client("https://users", cert=tmp_path / "cert")
