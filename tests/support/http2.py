"""An HTTP/2 server on loopback, over TLS, well-behaved or not."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable

import h2.config
import h2.connection
import h2.events
import h2.exceptions

__all__ = ["Http2Server", "Stream", "frame"]

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    """One frame, right or wrong."""
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


class Stream:
    """One request, and the ways to answer it."""

    def __init__(
        self,
        path: str,
        headers: dict[str, str],
        number: int,
        connection: h2.connection.H2Connection,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.path = path
        self.headers = headers
        self.number = number
        self.connection = connection
        self._writer = writer
        self.window = asyncio.Event()

    async def begin(self, status: str = "200", **headers: str) -> None:
        """Send the headers."""
        named = [(k.replace("_", "-"), v) for k, v in headers.items()]
        if "content-type" not in dict(named):
            named.append(("content-type", "text/html; charset=utf-8"))
        self.connection.send_headers(self.number, [(":status", status), *named])
        await self.flush()

    async def send(self, data: bytes, *, end: bool = False) -> None:
        """Send body bytes as the reader's window allows."""
        while data:
            space = self.connection.local_flow_control_window(self.number)
            space = min(space, self.connection.max_outbound_frame_size)
            if not space:
                self.window.clear()
                await self.window.wait()
                continue
            self.connection.send_data(self.number, data[:space])
            data = data[space:]
            await self.flush()
        if end:
            self.connection.end_stream(self.number)
            await self.flush()

    async def answer(self, body: str | bytes, status: str = "200", **headers: str) -> None:
        """A complete response."""
        await self.begin(status, **headers)
        await self.send(body.encode() if isinstance(body, str) else body, end=True)

    async def reset(self) -> None:
        """End the stream with an error."""
        self.connection.reset_stream(self.number, error_code=2)
        await self.flush()

    async def go_away(self) -> None:
        """End the connection with an error."""
        self.connection.close_connection(error_code=2)
        await self.flush()
        self._writer.close()

    async def raw(self, data: bytes) -> None:
        """Send bytes that the library knows nothing of."""
        self._writer.write(data)
        await self._writer.drain()

    async def flush(self) -> None:
        """Send what the library has prepared."""
        await self.raw(self.connection.data_to_send())


class Http2Server:
    """Calls `handler` for each request, each in a task of its own."""

    def __init__(
        self, handler: Callable[[Stream], Awaitable[None]], certificate: ssl.SSLContext
    ) -> None:
        certificate.set_alpn_protocols(["h2", "http/1.1"])
        self._handler = handler
        self._tls = certificate
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.requests: list[Stream] = []
        self.port = 0

    async def __aenter__(self) -> Http2Server:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _start(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            with contextlib.suppress(
                ConnectionError, asyncio.CancelledError, h2.exceptions.H2Error, ssl.SSLError
            ):
                await work

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(
                ConnectionError, asyncio.CancelledError, h2.exceptions.H2Error, ssl.SSLError
            ):
                await self._frames(reader, writer)
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _frames(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        config = h2.config.H2Configuration(
            client_side=False, validate_outbound_headers=False, normalize_outbound_headers=False
        )
        connection = h2.connection.H2Connection(config=config)
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        streams: dict[int, Stream] = {}
        while data := await reader.read(65_536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    headers = {k.decode(): v.decode() for k, v in event.headers or ()}
                    number = event.stream_id or 0
                    stream = Stream(headers[":path"], headers, number, connection, writer)
                    streams[number] = stream
                    self.requests.append(stream)
                    self._start(self._handler(stream))
                elif isinstance(event, h2.events.WindowUpdated):
                    for stream in streams.values():
                        stream.window.set()
            writer.write(connection.data_to_send())
            await writer.drain()
