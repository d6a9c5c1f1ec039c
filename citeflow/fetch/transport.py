"""An httpx transport over the guarded network backend: two connection pools, nothing ambient.

No proxies, no environment, no cookies, no redirects, no content decoding. HTTP/1.1 only: with a
connection shared by several requests, ending one early (a body over its cap, a deadline) would
disturb the others.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import httpcore
import httpx

from citeflow.fetch.limits import CONNECT_LIMITS
from citeflow.fetch.network import GuardedBackend, Resolver, resolve_host

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["EXEMPT", "GuardedTransport"]

EXEMPT = "citeflow_exempt"
"""The request extension that names the pool: True for a target the operator has exempted."""


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    # Loading the certificates takes tens of milliseconds: once per process, not per fetcher.
    return httpx.create_ssl_context(trust_env=False)


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.aiter_stream():
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends requests over connections that `GuardedBackend` made.

    Requests whose `EXEMPT` extension is true go over a pool of their own, so that a connection to
    an internal host can never be reused for a request that is not exempt. Raises httpcore's
    exceptions, `SSRFBlockedError` and `NameNotFoundError`.
    """

    def __init__(
        self,
        *,
        resolve: Resolver = resolve_host,
        dial: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._vetted = self._pool(GuardedBackend(vet=True, resolve=resolve, dial=dial))
        self._exempt = self._pool(GuardedBackend(vet=False, resolve=resolve, dial=dial))

    @staticmethod
    def _pool(backend: GuardedBackend) -> httpcore.AsyncConnectionPool:
        return httpcore.AsyncConnectionPool(
            ssl_context=_ssl_context(),
            max_connections=None,  # callers bound their concurrency; a queue here would eat time
            max_keepalive_connections=CONNECT_LIMITS.keepalive_connections,
            keepalive_expiry=CONNECT_LIMITS.keepalive_seconds,
            http1=True,
            http2=False,
            retries=0,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the body of the response is the bytes on the wire, unread."""
        pool = self._exempt if request.extensions.get(EXEMPT) is True else self._vetted
        response = await pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions={"timeout": {"connect": CONNECT_LIMITS.connect}},
            )
        )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), request=request
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._vetted.aclose()
        await self._exempt.aclose()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close all connections."""
        await self.aclose()
