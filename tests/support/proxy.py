"""A small forward proxy on loopback: tunnels and absolute-form requests, credentials, a record."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from dataclasses import dataclass, field


@dataclass(slots=True)
class Asked:
    """One request as the proxy saw it; `sent` is what came through its tunnel, if it was one."""

    line: str
    headers: dict[str, str]
    sent: bytearray = field(default_factory=bytearray)


class LoopbackProxy:
    """Leads what it is asked for (a host name, or an address) to the loopback ports in `routes`.

    `credentials` are the user and password it wants. `answer` is sent instead of doing anything.
    A host without a route is answered with 502.
    """

    def __init__(
        self,
        routes: dict[str, int],
        *,
        credentials: str = "",
        answer: bytes = b"",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._routes = routes
        self._wanted = (
            f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else ""
        )
        self._answer = answer
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: list[Asked] = []
        self.connections = 0

    async def __aenter__(self) -> LoopbackProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._requests(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            line, *lines = head.decode("latin-1").split("\r\n")[:-2]
            headers = {k.lower(): v.strip() for k, v in (x.split(":", 1) for x in lines)}
            asked = Asked(line, headers)
            self.asked.append(asked)
            method, target, _ = line.split(" ")
            if self._answer or headers.get("proxy-authorization", "") != self._wanted:
                writer.write(self._answer or _status("407 Proxy Authentication Required"))
                await writer.drain()
                if not self._answer.startswith(b"HTTP/1.1 "):
                    return
                continue
            where = target if method == "CONNECT" else target.split("/")[2]
            host = where.rpartition(":")[0] if where.rpartition(":")[2].isdecimal() else where
            port = self._routes.get(host.strip("[]"))
            if port is None:
                writer.write(_status("502 Bad Gateway"))
                await writer.drain()
                continue
            there, onward = await asyncio.open_connection("127.0.0.1", port)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = "/" + "/".join(target.split("/")[3:])
                kept = [x for x in lines if not x.lower().startswith(("proxy-", "connection:"))]
                text = "\r\n".join([f"GET {path} HTTP/1.1", *kept, "Connection: close"])
                onward.write(text.encode("latin-1") + b"\r\n\r\n")
            try:
                await asyncio.gather(_pipe(reader, onward, asked.sent), _pipe(there, writer))
            finally:
                onward.close()
            return


def _status(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode()


async def _pipe(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray | None = None
) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            if kept is not None:
                kept += data
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(ConnectionError, OSError, RuntimeError, NotImplementedError):
        writer.close()
