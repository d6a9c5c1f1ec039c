"""Where connections are made, and therefore where addresses are vetted.

A name is resolved once per connection. Every address it has is vetted, one refused address
refuses the name, and the connection goes to a vetted address, so there is no second look-up that
could answer differently (DNS rebinding). TLS still names and verifies the host: httpcore takes
server name and Host header from the URL, not from the address connected to.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore

from citeflow.errors import SSRFBlockedError
from citeflow.fetch.addresses import is_public_address
from citeflow.fetch.http2 import FrameCounter, FramesCounted
from citeflow.fetch.limits import CONNECT_LIMITS
from citeflow.fetch.threads import in_thread

__all__ = ["GuardedBackend", "NameNotFoundError", "Resolver", "resolve_host"]

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host name and port to its addresses, in the order to try them; raises
`NameNotFoundError` when there are none."""


class NameNotFoundError(Exception):
    """The host name has no address, or the name servers did not say."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The addresses of `host` as the system's resolver gives them, without duplicates.

    Each look-up has a daemon thread of its own: one that a dead name server holds for half a
    minute delays neither other look-ups, nor other blocking work, nor the end of the program.
    """
    return await in_thread(functools.partial(_look_up, host, port), name="citeflow-dns")


def _look_up(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise NameNotFoundError("the host name has no address") from exc
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Makes one connection, to a vetted address only; with `vet=False` to any the name has.

    `dial` opens the connection to one address (default: the system's TCP). With `direct=False` the
    other end of what it opens is a proxy, and is not compared with the address.
    """

    def __init__(
        self,
        *,
        vet: bool,
        resolve: Resolver,
        dial: httpcore.AsyncNetworkBackend | None = None,
        direct: bool = True,
    ) -> None:
        self._vet = vet
        self._direct = direct
        self._resolve = resolve
        self._dial = dial or httpcore.AnyIOBackend()
        self._stream: httpcore.AsyncNetworkStream | None = None
        self._frames = FrameCounter()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the vetted addresses of `host`.

        Raises `SSRFBlockedError`, `NameNotFoundError`, or httpcore's connect errors.
        """
        addresses = await self._addresses(host, port)
        if self._vet and not all(is_public_address(address) for address in addresses):
            raise SSRFBlockedError("the host has an address that is not a public one")
        ends = time.monotonic() + (CONNECT_LIMITS.connect if timeout is None else timeout)
        tried = addresses[: CONNECT_LIMITS.addresses_tried]
        for left in range(len(tried), 0, -1):
            address = tried[-left]
            # Each gets its share of what is left, so that a silent first one (a broken IPv6
            # route, say) leaves time for the next.
            share = max(ends - time.monotonic(), 0.0) / left
            try:
                stream = await self._dial.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
                continue
            self._stream = stream
            if self._vet and self._direct:
                await _check_peer(stream, address)
            return FramesCounted(stream, self._frames)
        raise NameNotFoundError("the host name has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refused: pages are not read from local sockets."""
        raise SSRFBlockedError("local sockets are not read")

    def begin_request(self) -> None:
        """Begin the count of what one request may cost."""
        self._frames.begin()

    async def aclose(self) -> None:
        """Close the connection, also one that was given up during its TLS handshake."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    async def sleep(self, seconds: float) -> None:
        """Sleep, as httpcore asks for between its own retries (none are configured)."""
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            return [ipaddress.ip_address(host).compressed]
        except ValueError:
            return await self._resolve(host, port)


async def _check_peer(stream: httpcore.AsyncNetworkStream, address: str) -> None:
    """Close and refuse a connection whose other end is not the vetted address."""
    peer = stream.get_extra_info("server_addr")
    try:
        reached = ipaddress.ip_address(peer[0])
    except (TypeError, IndexError, ValueError):
        reached = None
    if reached != ipaddress.ip_address(address):
        await stream.aclose()
        raise SSRFBlockedError("the connection did not reach the address that was vetted")
