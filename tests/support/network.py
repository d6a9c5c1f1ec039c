"""Keeps the tests off the internet: only loopback and Unix sockets can be reached.

Covers this process. Programs that a test starts are given loopback addresses by the test.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NetworkBlockedError", "NetworkGuard", "network_guard"]


class NetworkBlockedError(RuntimeError):
    """A test tried to leave this machine. Give the code under test a loopback server instead."""


def _is_local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host is None or host == "":
        return True
    if not isinstance(host, str):
        return False
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.lower() == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _is_numeric(host: object) -> bool:
    try:
        ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return False
    return True


class NetworkGuard:
    """The attempts to leave the machine, refused and remembered until the running test ends."""

    def __init__(self) -> None:
        self.attempts: list[str] = []

    def refuse(self, what: str) -> NetworkBlockedError:
        """The error to raise for one attempt, after noting it."""
        self.attempts.append(what)
        return NetworkBlockedError(f"tests must not leave this machine: {what}")


@pytest.fixture(scope="session")
def network_guard() -> Iterator[NetworkGuard]:
    """Puts the guard in place for the whole session."""
    guard = NetworkGuard()
    patch = pytest.MonkeyPatch()
    getaddrinfo = socket.getaddrinfo

    def guarded(name: str) -> Any:
        original = getattr(socket.socket, name)

        def call(self: socket.socket, *args: Any) -> Any:
            # sendto(data, [flags,] address), connect(address): the address comes last.
            address = args[-1]
            inet = self.family in (socket.AF_INET, socket.AF_INET6)
            if inet and isinstance(address, tuple) and not _is_local(address[0]):
                raise guard.refuse(f"{name} to {address!r}")
            return original(self, *args)

        return call

    def guarded_getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        # A numeric address needs no name server.
        if not (_is_local(host) or _is_numeric(host)):
            raise guard.refuse(f"look-up of {host!r}")
        return getaddrinfo(host, port, *args, **kwargs)

    for name in ("connect", "connect_ex", "sendto"):
        patch.setattr(socket.socket, name, guarded(name))
    patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
    yield guard
    patch.undo()


@pytest.fixture(autouse=True)
def _no_network(network_guard: NetworkGuard) -> Iterator[None]:
    """Fails a test that tried to leave the machine even when the code under test hid the error."""
    network_guard.attempts.clear()
    yield
    attempts, network_guard.attempts = network_guard.attempts, []
    if attempts:
        pytest.fail(f"the test tried to leave this machine: {'; '.join(attempts)}")
