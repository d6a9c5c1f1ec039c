"""Reaching pages through a proxy that the operator configured.

The host of a page is resolved and vetted here first, as without a proxy. Then a proxy that is
asked for a tunnel (CONNECT) is asked for the vetted address, so it has no name to resolve
differently; TLS goes through the tunnel and names and verifies the host. A page over http without a
tunnel is asked for in absolute form, by name, because the proxy takes the Host header from there
(RFC 9112, 3.2.2): then what the proxy resolves is the proxy's affair. The proxy's own address is
not vetted.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field

import httpcore
import httpx

from citeflow.fetch.limits import CONNECT_LIMITS
from citeflow.fetch.network import GuardedBackend, NameNotFoundError, resolve_host
from citeflow.fetch.threads import in_thread

__all__ = ["Proxy", "ProxyDial", "ProxyError", "parse_proxy"]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_AUTHENTICATION_REQUIRED = 407
# With these a proxy says that it did not get through to the address, not that it refuses.
_NOT_REACHED = frozenset({502, 503, 504})


class ProxyError(Exception):
    """The proxy cannot be used, or refuses. The message is for people and names no credentials."""


class _NotReachedError(ProxyError, httpcore.ConnectError):
    """The proxy did not get through to this address; the host may have another."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy: where it is, and the value of its Proxy-Authorization header (blank: none).

    `tunnel_http`: a tunnel is asked for also for pages over http.
    """

    scheme: str
    host: str
    port: int
    authorization: str = field(default="", repr=False)
    tunnel_http: bool = False

    def tunnels(self, scheme: str) -> bool:
        """True when pages of this scheme are read through a tunnel."""
        return scheme == "https" or self.tunnel_http

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What is sent to the proxy, and to nobody else."""
        return [(b"Proxy-Authorization", self.authorization.encode())] if self.authorization else []


@functools.lru_cache(maxsize=4)
def parse_proxy(setting: str, *, tunnel_http: bool = False) -> Proxy | None:
    """The proxy of a setting (`http://user:password@host:port`, or https), None when it is blank.

    Raises `ProxyError`: a setting that cannot be read must not mean that no proxy is used.
    """
    if not setting.strip():
        return None
    try:
        url = httpx.URL(setting.strip())
    except (httpx.InvalidURL, ValueError):
        raise ProxyError("fetch_proxy_url cannot be parsed") from None  # its text has the password
    if url.scheme not in _DEFAULT_PORTS or not url.host or url.raw_path != b"/":
        raise ProxyError("fetch_proxy_url is not of the form http://host:port")
    authorization = ""
    if url.userinfo:
        pair = f"{url.username}:{url.password}".encode()
        authorization = f"Basic {base64.b64encode(pair).decode()}"
    port = _DEFAULT_PORTS[url.scheme] if url.port is None else url.port
    return Proxy(url.scheme, url.raw_host.decode(), port, authorization, tunnel_http)


@functools.cache
def _proxy_ssl_context() -> ssl.SSLContext:
    # Not that of pages: httpcore sets the protocols it offers to them on the context.
    context = httpx.create_ssl_context(trust_env=False)
    context.set_alpn_protocols(["http/1.1"])
    return context


class ProxyDial(httpcore.AsyncNetworkBackend):
    """Opens connections at a proxy: through a tunnel to an address, or (`tunnel=False`) to itself.

    Raises `ProxyError`.
    """

    def __init__(self, proxy: Proxy, *, tunnel: bool) -> None:
        self._proxy = proxy
        self._tunnel = tunnel

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection that leads to the address `host`, or to the proxy, as it was made for."""
        backend = GuardedBackend(vet=False, resolve=resolve_host)
        asked = False
        try:
            async with asyncio.timeout(CONNECT_LIMITS.connect if timeout is None else timeout):
                stream = await backend.connect_tcp(
                    self._proxy.host, self._proxy.port, timeout, local_address, socket_options
                )
                if self._proxy.scheme == "https":
                    tls = await in_thread(_proxy_ssl_context, name="citeflow-tls")
                    stream = await stream.start_tls(tls, self._proxy.host)
                if self._tunnel:
                    asked = True
                    stream = await self._ask(stream, host, port)
                return stream
        except BaseException as exc:
            await backend.aclose()
            if isinstance(exc, ProxyError):
                raise
            if isinstance(exc, TimeoutError):
                kind = _NotReachedError if asked else ProxyError
                raise kind("the proxy did not answer in time") from exc
            if isinstance(exc, httpcore.NetworkError | httpcore.TimeoutException | OSError):
                raise ProxyError("no connection to the proxy, or it broke") from exc
            if isinstance(exc, httpcore.ProtocolError):
                raise ProxyError("the proxy broke the HTTP protocol") from exc
            if isinstance(exc, NameNotFoundError):
                raise ProxyError("the host name of the proxy has no address") from exc
            raise

    async def _ask(
        self, stream: httpcore.AsyncNetworkStream, address: str, port: int
    ) -> httpcore.AsyncNetworkStream:
        proxy = self._proxy
        origin = httpcore.Origin(proxy.scheme.encode(), proxy.host.encode(), proxy.port)
        there = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        request = httpcore.Request(
            "CONNECT",
            httpcore.URL(
                scheme=origin.scheme, host=origin.host, port=origin.port, target=there.encode()
            ),
            headers=[(b"Host", there.encode()), *proxy.headers],
        )
        connection = httpcore.AsyncHTTP11Connection(origin, stream)
        response = await connection.handle_async_request(request)
        if 200 <= response.status < 300:
            tunnel: httpcore.AsyncNetworkStream = response.extensions["network_stream"]
            return tunnel
        if response.status == _AUTHENTICATION_REQUIRED:
            raise refused_credentials()
        if response.status in _NOT_REACHED:
            raise _NotReachedError(
                f"the proxy did not reach the site's address (status {response.status})"
            )
        raise ProxyError(f"the proxy refused a tunnel (status {response.status})")


def refused_credentials() -> ProxyError:
    """What status 407 means, of a proxy asked for a tunnel or for a page."""
    return ProxyError("the proxy wants other credentials (status 407)")
