"""Connections to the hosts of pages, kept for the next page of the same site.

One request has a connection to itself, also with HTTP/2: whatever ends it early (a cap, a deadline,
a cancelled task) closes that connection and touches no other. httpcore's own pool is not used
because a request cancelled at the wrong moment leaves its connection in it for good.
"""

from __future__ import annotations

import collections
import functools
import ssl
import time

import httpcore

from citeflow.fetch.http2 import told_as_http1
from citeflow.fetch.limits import CONNECT_LIMITS
from citeflow.fetch.network import GuardedBackend, Resolver
from citeflow.fetch.tls import page_tls

__all__ = ["Connections", "Lease"]


class Lease:
    """A connection in use by one request. `reused`: it has served another one before."""

    def __init__(
        self, origin: httpcore.Origin, backend: GuardedBackend, tls: ssl.SSLContext | None
    ) -> None:
        self.origin = origin
        self.reused = False
        self.idle_since = 0.0
        self._backend = backend
        self._connection = httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=tls,
            keepalive_expiry=CONNECT_LIMITS.keepalive_seconds,
            http1=True,
            http2=True,
            retries=0,
            network_backend=backend,
        )

    async def send(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request. Whatever this raises, the lease is to be ended by its holder."""
        self._backend.begin_request()
        with told_as_http1(in_body=False):
            return await self._connection.handle_async_request(request)

    def is_idle(self) -> bool:
        """True when the server lets the line stand for another request."""
        line = self._connection
        return line.is_idle() and line.is_available() and not line.has_expired()

    async def aclose(self) -> None:
        """Close the connection, in whatever state it is."""
        try:
            await self._connection.aclose()
        finally:
            await self._backend.aclose()


class Connections:
    """The connections of one policy: all of them vetted, or none; all through a proxy, or none.

    `vet`, `resolve`, `dial` and `direct` are those of `GuardedBackend`.
    """

    def __init__(
        self,
        *,
        vet: bool,
        resolve: Resolver,
        dial: httpcore.AsyncNetworkBackend | None,
        direct: bool,
    ) -> None:
        self._backend = functools.partial(
            GuardedBackend, vet=vet, resolve=resolve, dial=dial, direct=direct
        )
        self._idle: collections.deque[Lease] = collections.deque()  # the longest idle first
        self._closed = False

    async def fresh(self, origin: httpcore.Origin) -> Lease:
        """A connection that will be made by its first request."""
        tls = await page_tls() if origin.scheme == b"https" else None
        return Lease(origin, self._backend(), tls)

    async def take(self, origin: httpcore.Origin) -> Lease:
        """An idle connection to `origin`, or a fresh one."""
        ended: list[Lease] = []
        oldest = time.monotonic() - CONNECT_LIMITS.keepalive_seconds
        while self._idle and self._idle[0].idle_since < oldest:
            ended.append(self._idle.popleft())
        found: Lease | None = None
        for lease in [lease for lease in reversed(self._idle) if lease.origin == origin]:
            # Asked of the ones in question alone: it is a system call.
            self._idle.remove(lease)
            if lease.is_idle():
                lease.reused = True
                found = lease
                break
            ended.append(lease)
        for lease in ended:
            await lease.aclose()
        return found or await self.fresh(origin)

    async def give_back(self, lease: Lease, *, ended: bool) -> None:
        """End a lease: its connection is kept if it can serve another request, else closed.

        `ended`: the response was read to its end; what is left of one would meet the next.
        """
        kept = len(self._idle) < CONNECT_LIMITS.keepalive_connections
        if ended and kept and not self._closed and lease.is_idle():
            lease.idle_since = time.monotonic()
            self._idle.append(lease)
        else:
            await lease.aclose()

    async def aclose(self) -> None:
        """Close what is idle; what is in use is closed when it is given back."""
        self._closed = True
        while self._idle:
            await self._idle.popleft().aclose()
