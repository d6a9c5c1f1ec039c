"""A loopback server that plays a search engine, and the pages DuckDuckGo would send."""

from __future__ import annotations

import asyncio
import contextlib
import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

__all__ = [
    "ANOMALY_PAGE",
    "NOTHING_FOUND_PAGE",
    "PlayedEngine",
    "Reply",
    "Request",
    "ad",
    "result",
    "result_page",
    "wrapped",
]

_HEAD = '<!DOCTYPE html><html><head><title>q at DuckDuckGo</title></head><body class="body--html">'

NOTHING_FOUND_PAGE = (
    _HEAD + '<form action="/html/"><input name="q" value="anomaly-modal"></form>'
    '<div id="links" class="results"><div class="result results_links results_links_deep '
    'result--no-result"><div class="links_main links_deep result__body">'
    '<h2 class="result__title"><div class="no-results">No results.</div></h2></div></div></div>'
    "</body></html>"
)

ANOMALY_PAGE = (
    _HEAD + '<form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html" method="POST">'
    '<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></form>'
    "</body></html>"
)


def wrapped(url: str) -> str:
    """`url` behind DuckDuckGo's redirector, as its pages link to results."""
    return f"//duckduckgo.com/l/?uddg={quote(url, safe='')}&rut=0123abcd"


def result(title: str, href: str, snippet: str | None = "A snippet.") -> str:
    """One result block; without a snippet link when `snippet` is None."""
    link = html.escape(href)
    body = (
        ""
        if snippet is None
        else (f'<a class="result__snippet" href="{link}">{html.escape(snippet)}</a>')
    )
    return (
        '<div class="result results_links results_links_deep web-result ">'
        '<div class="links_main links_deep result__body"><!-- visible part -->'
        f'<h2 class="result__title"><a rel="nofollow" class="result__a" href="{link}">'
        f"{html.escape(title)}</a></h2>"
        '<div class="result__extras"><div class="result__extras__url">'
        f'<a class="result__url" href="{link}"> shown.example </a></div></div>{body}'
        '<div class="clear"></div></div></div>'
    )


def ad(title: str) -> str:
    """An advertisement in the shape of a result."""
    href = "https://duckduckgo.com/y.js?ad_domain=shop.example&ad_provider=x"
    return result(title, href).replace("web-result ", "result--ad ")


def result_page(blocks: Sequence[str]) -> str:
    """A result page with these blocks."""
    links = "".join(blocks)
    return f'{_HEAD}<div id="links" class="results">{links}</div></body></html>'


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def query(self) -> str:
        """The search terms, from the form or from the URL."""
        form = self.body.decode() if self.body else urlsplit(self.path).query
        return parse_qs(form).get("q", [""])[0]


@dataclass(frozen=True)
class Reply:
    """What to send; `delay` in seconds before the status line, `drip` between bytes of the body,
    `close` instead of an answer, `raw` bytes in place of the whole response."""

    status: int = 200
    body: str | bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: float = 0.0
    close: bool = False
    raw: bytes | None = None


class PlayedEngine:
    """Serves on a free loopback port what `answer` says, and keeps the requests it got."""

    def __init__(self, answer: Reply | Callable[[Request], Reply]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.origin = ""

    @property
    def url(self) -> str:
        """Where the DuckDuckGo engine finds its page."""
        return f"{self.origin}/html/"

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.origin = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            request = await _read_request(reader)
            self.requests.append(request)
            reply = self.answer(request) if callable(self.answer) else self.answer
            await _send(writer, reply)
        writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    pairs = (line.split(":", 1) for line in head[1:] if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


async def _send(writer: asyncio.StreamWriter, reply: Reply) -> None:
    if reply.close:
        return
    await asyncio.sleep(reply.delay)
    if reply.raw is not None:
        for i in range(0, len(reply.raw), 1 if reply.drip else 65_536):
            writer.write(reply.raw[i : i + (1 if reply.drip else 65_536)])
            await writer.drain()
            await asyncio.sleep(reply.drip)
        return
    body = reply.body.encode() if isinstance(reply.body, str) else reply.body
    headers = {"Content-Length": str(len(body)), "Connection": "close", **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    if not reply.drip:
        writer.write(body)
    for i in range(len(body) if reply.drip else 0):
        writer.write(body[i : i + 1])
        await writer.drain()
        await asyncio.sleep(reply.drip)
    await writer.drain()
