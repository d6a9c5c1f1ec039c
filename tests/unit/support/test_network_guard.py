"""The guard that keeps the tests off the internet."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from tests.support.network import NetworkBlockedError, NetworkGuard


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, ("192.0.2.1", 80)),
        (socket.AF_INET, ("example.com", 80)),
        (socket.AF_INET6, ("2001:db8::1", 80)),
        (socket.AF_INET6, ("::ffff:192.0.2.1", 80)),
    ],
)
def test_connecting_to_another_machine_is_refused(
    network_guard: NetworkGuard, family: int, address: tuple[str, int]
) -> None:
    """A connection to a public address raises and is remembered."""
    with socket.socket(family) as client, pytest.raises(NetworkBlockedError, match=address[0]):
        client.connect(address)
    assert len(network_guard.attempts) == 1
    network_guard.attempts.clear()


def test_a_datagram_to_another_machine_is_refused(network_guard: NetworkGuard) -> None:
    """UDP is held to the same rule."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with udp, pytest.raises(NetworkBlockedError, match="sendto"):
        udp.sendto(b"x", ("192.0.2.1", 53))
    network_guard.attempts.clear()


async def test_looking_up_a_public_name_is_refused(network_guard: NetworkGuard) -> None:
    """Name resolution by the event loop goes through the guard."""
    with pytest.raises(NetworkBlockedError, match="look-up"):
        await asyncio.get_running_loop().getaddrinfo("example.com", 80)
    network_guard.attempts.clear()


async def test_loopback_is_reachable() -> None:
    """A server on loopback can be reached by number and by name."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        for host in ("127.0.0.1", "localhost"):
            reader, writer = await asyncio.open_connection(host, port)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()


def test_numeric_addresses_are_resolved() -> None:
    """Reading a numeric address needs no network and is allowed."""
    assert socket.getaddrinfo("192.0.2.1", 80, type=socket.SOCK_STREAM)[0][4] == ("192.0.2.1", 80)


def test_the_environment_holds_no_settings_and_no_proxies() -> None:
    """Tests see the defaults, whatever the developer has exported; only the cache is off."""
    names = {name for name in os.environ if not name.startswith("CITEFLOW_TEST_")}
    own = [name for name in names if name.startswith("CITEFLOW_")]
    assert own == ["CITEFLOW_RESEARCH_NO_CACHE"]
    assert [name for name in names if name.lower().endswith("_proxy")] == []
