"""Loopback servers that count their connections, and a network that leads public names to them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

import httpcore
import pytest
import trustme

from citeflow.fetch import connections
from citeflow.fetch.network import NameNotFoundError

Handler = Callable[[str, dict[str, str], asyncio.StreamWriter], Awaitable[None]]


class LoopbackServer:
    """A plain HTTP/1.1 server on 127.0.0.1; `handler` writes the raw answer to each request."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    line, *lines = head.decode("latin-1").split("\r\n")[:-2]
                    headers = {k.lower(): v.strip() for k, v in (x.split(":", 1) for x in lines)}
                    path = line.split(" ")[1]
                    self.requests.append((path, headers))
                    await self._handler(path, headers, writer)
                    await writer.drain()
                    if writer.is_closing():
                        return
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def __aenter__(self) -> LoopbackServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def response(
    body: bytes | str = b"",
    *,
    status: str = "200 OK",
    content_type: str | None = "text/html; charset=utf-8",
    headers: Iterable[tuple[str, str]] = (),
) -> bytes:
    """The bytes of a complete answer with a Content-Length."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def serving(pages: dict[str, bytes], *, tls: ssl.SSLContext | None = None) -> LoopbackServer:
    """A server that answers each path with its bytes, others with 404."""

    async def handler(path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(pages.get(path, response("no such page", status="404 Not Found")))

    return LoopbackServer(handler, tls=tls)


def trust(patch: pytest.MonkeyPatch, authority: trustme.CA) -> None:
    """Have pages' certificates verified with this authority alone."""
    context = ssl.create_default_context()
    authority.configure_trust(context)

    async def page_tls() -> ssl.SSLContext:
        return context

    patch.setattr(connections, "page_tls", page_tls)


class FakeNetwork(httpcore.AsyncNetworkBackend):
    """A resolver and a dialler: names have scripted addresses, addresses lead to local ports.

    `names` maps a host to the answers of successive look-ups (the last one repeats). `routes`
    maps an address to a loopback port. What is asked and dialled is recorded.
    """

    def __init__(
        self,
        names: dict[str, Sequence[Sequence[str]]],
        routes: dict[str, int],
        *,
        peers: dict[str, str] | None = None,
    ) -> None:
        self._names = names
        self._routes = routes
        self._peers = peers or {}
        self.lookups: list[str] = []
        self.dialled: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        answers = self._names.get(host)
        if not answers:
            raise NameNotFoundError("the host name has no address")
        self.lookups.append(host)
        return answers[min(self.lookups.count(host), len(answers)) - 1]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.dialled.append(host)
        if host not in self._routes:
            raise httpcore.ConnectError("no route")
        stream = await httpcore.AnyIOBackend().connect_tcp("127.0.0.1", self._routes[host], timeout)
        return _Claiming(stream, self._peers.get(host, host), port)


class _Claiming(httpcore.AsyncNetworkStream):
    """A connection that says it reached `address`."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, address: str, port: int) -> None:
        self._stream = stream
        self._peer = (address, port)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(self, *args: object, **kwargs: object) -> httpcore.AsyncNetworkStream:
        return await self._stream.start_tls(*args, **kwargs)  # type: ignore[arg-type]

    def get_extra_info(self, info: str) -> object:
        return self._peer if info == "server_addr" else self._stream.get_extra_info(info)


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A port that keeps the first bytes of each connection and closes it."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], seen
