"""An httpx transport over guarded connections, with nothing ambient.

No proxy but the one it is told of, no environment, no cookies, no redirects, no content decoding.
HTTP/1.1, or HTTP/2 where a server offers it by TLS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpcore
import httpx

from citeflow.fetch.connections import Connections, Lease
from citeflow.fetch.http2 import StreamResetError, told_as_http1
from citeflow.fetch.limits import CONNECT_LIMITS
from citeflow.fetch.network import Resolver, resolve_host
from citeflow.fetch.proxy import Proxy, ProxyDial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

__all__ = ["EXEMPT", "PROXY", "GuardedTransport"]

EXEMPT = "citeflow_exempt"
"""The request extension that is True for a target the operator has exempted from vetting."""
PROXY = "citeflow_proxy"
"""The request extension that holds the `Proxy` to go through; None or absent: none."""

# How a server that closed an idle connection shows when the next request meets that moment.
_STALE = (
    httpcore.ConnectionNotAvailable,
    httpcore.RemoteProtocolError,
    httpcore.ReadError,
    httpcore.WriteError,
)


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response, lease: Lease, home: Connections) -> None:
        self._response = response
        self._lease = lease
        self._home = home
        self._ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._response.extensions.get("http_version") != b"HTTP/2":
            async for chunk in self._response.aiter_stream():
                yield chunk
        else:
            with told_as_http1(in_body=True):
                async for chunk in self._response.aiter_stream():
                    yield chunk
        self._ended = True

    async def aclose(self) -> None:
        try:
            await self._response.aclose()
        finally:
            await self._home.give_back(self._lease, ended=self._ended)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends requests over connections that `GuardedBackend` made.

    Requests whose `EXEMPT` extension is true have connections of their own, so that one to an
    internal host can never be reused for a request that is not exempt; so have those that go
    through a proxy. A response must be closed once. Raises httpcore's exceptions,
    `SSRFBlockedError`, `NameNotFoundError` and `ProxyError`.
    """

    def __init__(
        self,
        *,
        resolve: Resolver = resolve_host,
        dial: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._resolve = resolve
        self._dial = dial
        self._homes: dict[tuple[bool, Proxy | None, bool], Connections] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the body of the response is the bytes on the wire, unread."""
        exempt = request.extensions.get(EXEMPT) is True
        proxy: Proxy | None = request.extensions.get(PROXY)
        tunnel = proxy is not None and proxy.tunnels(request.url.scheme)
        home = await self._home(exempt, proxy, tunnel=tunnel)
        target, headers = request.url.raw_path, request.headers.raw
        if proxy is not None and not tunnel:
            target = b"%s://%s%s" % (request.url.raw_scheme, request.url.netloc, target)
            headers = [*headers, *proxy.headers]
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=target,
            ),
            headers=headers,
            content=request.stream,
            extensions={"timeout": {"connect": CONNECT_LIMITS.connect}},
        )
        lease = await home.take(sent.url.origin)
        try:
            response = await lease.send(sent)
        except _STALE as exc:
            await lease.aclose()
            if not lease.reused or isinstance(exc, StreamResetError):
                raise
            lease = await home.fresh(sent.url.origin)
            response = await self._first(lease, sent)
        except BaseException:
            await lease.aclose()
            raise
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response, lease, home),
            request=request,
        )

    @staticmethod
    async def _first(lease: Lease, request: httpcore.Request) -> httpcore.Response:
        try:
            return await lease.send(request)
        except BaseException:
            await lease.aclose()
            raise

    async def _home(self, exempt: bool, proxy: Proxy | None, *, tunnel: bool) -> Connections:
        home = self._homes.get((exempt, proxy, tunnel))
        if home is None:
            # The setting may change while running; what is left of another proxy is closed.
            others = [key for key in self._homes if proxy and key[1] not in (None, proxy)]
            closed = [self._homes.pop(key) for key in others]
            home = self._homes[exempt, proxy, tunnel] = Connections(
                vet=not exempt,
                resolve=self._resolve,
                dial=self._dial if proxy is None else ProxyDial(proxy, tunnel=tunnel),
                direct=proxy is None,
            )
            for other in closed:
                await other.aclose()
        return home

    async def aclose(self) -> None:
        """Close all connections."""
        for home in self._homes.values():
            await home.aclose()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close all connections."""
        await self.aclose()
