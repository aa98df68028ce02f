"""The address of a server, and the settings of a connection to it."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DEFAULT_SERVER = "http://127.0.0.1:7171"
DEFAULT_PORTS = {"http": 80, "https": 443}
PORT = re.compile(r"[0-9]{1,9}")
MAX_PORT = 65535
CONNECT_TIMEOUT_MS = 1000
"""How long a server may take to accept a connection, if there are others."""
TOKEN_CHECK = 1.0
"""The seconds between two checks of a file with a token."""

try:
    VERSION = version("polynym")
except PackageNotFoundError:
    # The sources are used without being installed.
    VERSION = "unknown"

PathLike = str | os.PathLike[str]
ChannelOptions = Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class Address:
    """The address of a server."""

    host: str
    port: int
    is_tls: bool

    @property
    def name(self) -> str:
        """Returns the address as `HOST:PORT`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def target(self) -> str:
        """Returns the address for gRPC."""
        return f"dns:///{self.name}"

    @property
    def is_loopback(self) -> bool:
        """Returns whether the server is on this machine."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Returns whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def parse_address(server: str) -> Address:
    """Returns the address in a URL, or in `HOST:PORT`."""
    if "@" in server:
        raise ValueError("the server must not have user information: pass a token with token")
    has_scheme = "://" in server
    parts = urlsplit(server if has_scheme else f"//{server}")
    host, port = parts.hostname, parse_port(parts.netloc)
    if not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(
            f"the server must be http://HOST:PORT or https://HOST:PORT, not {server!r}"
        )
    if not has_scheme:
        if port is None:
            raise ValueError(f"the server {server} has no port: write {host}:7171")
        return Address(host, port, is_tls=not is_loopback(host))
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"the server must begin with http:// or https://, not {parts.scheme}://")
    return Address(host, port or DEFAULT_PORTS[parts.scheme], is_tls=parts.scheme == "https")


def parse_port(authority: str) -> int | None:
    """Returns the port in `HOST:PORT`, if there is one."""
    _, has_port, port = authority[authority.rfind("]") + 1 :].partition(":")
    if not has_port:
        return None
    if not PORT.fullmatch(port) or not 0 < int(port) <= MAX_PORT:
        raise ValueError(f'the port of a server must be a number from 1 to 65535, not "{port}"')
    return int(port)


def parse_addresses(servers: str | Sequence[str]) -> list[Address]:
    """Returns the addresses in a list, or in a text with commas."""
    given = servers.split(",") if isinstance(servers, str) else servers
    addresses = [parse_address(server.strip()) for server in given]
    if not addresses:
        raise ValueError("the list of servers is empty")
    if len({address.is_tls for address in addresses}) > 1:
        raise ValueError("the servers must be all with TLS, or all without: http:// or https://")
    return list(dict.fromkeys(addresses))


class TokenFile:
    """A file with a token. It is read again when it changes."""

    def __init__(self, path: PathLike) -> None:
        self._path = Path(path)
        self._stamp = self._current_stamp()
        self._token = checked_token(self._path.read_text(encoding="utf-8"))
        self._next_check = time.monotonic() + TOKEN_CHECK

    def __call__(self) -> str:
        """Returns the token; if the file cannot be read any more, the last one."""
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + TOKEN_CHECK
            with contextlib.suppress(OSError, ValueError):
                self._refresh()
        return self._token

    def _refresh(self) -> None:
        stamp = self._current_stamp()
        if stamp != self._stamp:
            self._token = checked_token(self._path.read_text(encoding="utf-8"))
            self._stamp = stamp

    def _current_stamp(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino


def checked_token(text: str) -> str:
    """Returns a token without the white space around it."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("the token must be one word of printable ASCII characters")
    return token


@dataclass(frozen=True)
class Settings:
    """The settings of a client, as its caller gave them."""

    server: str | Sequence[str] | None = None
    token: str | None = None
    token_file: PathLike | None = None
    ca: PathLike | None = None
    cert: PathLike | None = None
    key: PathLike | None = None
    insecure: bool = False

    def token_source(self) -> TokenFile | StaticToken:
        """Returns the source of the token of each call."""
        if self.token is not None and self.token_file is not None:
            raise ValueError("token and token_file exclude each other")
        if self.token is not None:
            return StaticToken(checked_token(self.token))
        path = self.token_file or os.environ.get("POLYNYM_TOKEN_FILE")
        return TokenFile(path) if path else StaticToken(None)

    def checked_addresses(self, token: str | None) -> list[Address]:
        """Returns the addresses. Refuses to send a token over a network without encryption."""
        servers = self.server
        if servers is None:
            servers = os.environ.get("POLYNYM_SERVER") or DEFAULT_SERVER
        addresses = parse_addresses(servers)
        for address in addresses:
            if token and not address.is_tls and not address.is_loopback and not self.insecure:
                raise ValueError(
                    f"a token must not be sent to {address.host} without encryption: "
                    "use https://, or set insecure=True if the network is trusted"
                )
        return addresses

    def certificates(self) -> dict[str, bytes | None]:
        """Returns the arguments of the credentials of a TLS connection."""
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key must be set together")
        ca = self.ca or os.environ.get("POLYNYM_CA")
        return {
            "root_certificates": Path(ca).read_bytes() if ca else system_roots(),
            "private_key": Path(self.key).read_bytes() if self.key else None,
            "certificate_chain": Path(self.cert).read_bytes() if self.cert else None,
        }


class StaticToken:
    """A token that does not change, or none."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def __call__(self) -> str | None:
        """Returns the token."""
        return self._token


def system_roots() -> bytes | None:
    """Returns the certificate authorities of the system; None for those of gRPC."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        return Path(paths.cafile).read_bytes()
    if paths.capath:
        # OpenSSL names the files by hashes.
        files = sorted(Path(paths.capath).glob("????????.[0-9]"))
        return b"\n".join(file.read_bytes() for file in files) or None
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    return "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode() or None


def channel_options(
    address: Address, more: ChannelOptions, *, has_others: bool = False
) -> list[tuple[str, Any]]:
    """Returns the options of a channel. Later ones win. There may be other servers."""
    options: list[tuple[str, Any]] = [
        ("grpc.primary_user_agent", f"polynym-python/{VERSION}"),
        # The rules retry, not a policy that a name server sends. Without one, the library repeats
        # only what it never sent.
        ("grpc.service_config_disable_resolution", 1),
        # The addresses of a name take turns. It is resolved anew when a connection is lost.
        ("grpc.service_config", '{"loadBalancingConfig":[{"round_robin":{}}]}'),
        ("grpc.dns_min_time_between_resolutions_ms", 1000),
        # A server that restarts is found again within the deadline of a call.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # Only while a call is open: a connection that has died in silence ends after 15 s. Newer
        # versions of gRPC read the third one, older ones the second.
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.ping_timeout_ms", 5_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if has_others:
        # A call goes on to another server while it has time.
        options.append(("grpc.min_reconnect_backoff_ms", CONNECT_TIMEOUT_MS))
    if address.is_loopback:
        options.append(("grpc.enable_http_proxy", 0))
    return [*options, *more]
