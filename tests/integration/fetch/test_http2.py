"""Reading pages over HTTP/2, from servers that mean well and from others."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
import time
from collections.abc import Awaitable, Callable

import psutil
import pytest
import trustme

from citeflow.fetch import FetchOutcome, FetchStatus, PageFetcher
from citeflow.settings import SiteConfig
from tests.support.http2 import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    Http2Server,
    Stream,
    frame,
)
from tests.support.loopback import FakeNetwork, trust
from tests.support.proxy import LoopbackProxy

PAGE = "<html><title>T</title><p>A short but real page, with words in it.</p></html>"
TEXT = "A short but real page, with words in it."
PUBLIC = "93.184.216.34"
# The smallest header block: ":status: 200", from the static table.
STATUS_200 = b"\x88"
# "content-type" of the static table with a value.
HTML = STATUS_200 + b"\x5f" + bytes((9,)) + b"text/html"


@pytest.fixture
def certificate(monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """For a.example, by an authority that the reader trusts."""
    authority = trustme.CA()
    trust(monkeypatch, authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.example").configure_cert(context)
    return context


def fetcher(server: Http2Server, **values: object) -> PageFetcher:
    net = FakeNetwork({"a.example": [[PUBLIC]]}, {PUBLIC: server.port})
    settings = {"fetch_respect_robots": False, "fetch_host_interval_ms": 0, **values}
    return PageFetcher(SiteConfig(settings, environ={}), resolve=net.resolve, dial=net)


async def test_pages_are_read_over_http2_and_the_connection_serves_the_next(
    certificate: ssl.SSLContext,
) -> None:
    """Negotiated by TLS; host, headers, redirects, coding and charset as with HTTP/1.1."""

    async def handler(stream: Stream) -> None:
        if stream.path == "/moved":
            await stream.answer("", "301", location="/packed")
        elif stream.path == "/packed":
            await stream.answer(gzip.compress(PAGE.encode()), content_encoding="gzip")
        elif stream.path == "/latin":
            page = PAGE.replace("real", "r\u00e9al").encode("latin-1")
            await stream.answer(page, content_type="text/html; charset=latin-1")
        else:
            await stream.answer("gone", "404")

    async with Http2Server(handler, certificate) as server, fetcher(server) as reader:
        found = [await reader.fetch(f"https://a.example/{p}") for p in ("packed", "latin", "x")]
        moved = await reader.fetch("https://a.example/moved")
    assert [page.text for page in found] == [TEXT, TEXT.replace("real", "r\u00e9al"), ""]
    assert (found[2].status, found[2].http_status) == (FetchStatus.HTTP_ERROR, 404)
    assert (moved.text, moved.final_url) == (TEXT, "https://a.example/packed")
    assert {stream.headers[":authority"] for stream in server.requests} == {"a.example"}
    assert "citeflow" in server.requests[0].headers["user-agent"].lower()
    assert server.requests[1].number > server.requests[0].number  # on the same connection


async def test_requests_at_once_have_connections_of_their_own(certificate: ssl.SSLContext) -> None:
    """Which is how the slots of a host stay what they are, and one cut short disturbs no other."""
    running = most = 0

    async def handler(stream: Stream) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        if stream.path == "/0":
            await stream.begin()
            await stream.send(b"x" * 100_000)
        else:
            await stream.answer(PAGE)

    limits = {"fetch_host_concurrency": 3, "fetch_max_body_bytes": 50_000}
    async with Http2Server(handler, certificate) as server, fetcher(server, **limits) as reader:
        pages = await asyncio.gather(*(reader.fetch(f"https://a.example/{n}") for n in range(12)))
    assert [page.status for page in pages] == [FetchStatus.TOO_LARGE] + [FetchStatus.OK] * 11
    assert most == 3
    assert 3 <= server.connections <= 4


async def test_a_response_cut_short_takes_its_connection_with_it(
    certificate: ssl.SSLContext,
) -> None:
    """What is left of one body never meets the next request."""

    async def handler(stream: Stream) -> None:
        if stream.path == "/large":
            await stream.answer(b"x" * 200_000)
        else:
            await stream.answer(PAGE)

    limits = {"fetch_max_body_bytes": 50_000}
    async with Http2Server(handler, certificate) as server, fetcher(server, **limits) as reader:
        large = await reader.fetch("https://a.example/large")
        small = await reader.fetch("https://a.example/small")
    assert (large.status, small.text) == (FetchStatus.TOO_LARGE, TEXT)
    assert server.connections == 2


@pytest.mark.parametrize("ending", ["reset", "go_away", "close"])
async def test_a_reset_is_repeated_once(certificate: ssl.SSLContext, ending: str) -> None:
    """Of the stream or of the connection, before an answer: asked again, and then not again."""

    async def handler(stream: Stream) -> None:
        count = sum(other.path == stream.path for other in server.requests)
        if stream.path == "/once" and count == 2:
            await stream.answer(PAGE)
        elif ending == "close":
            stream._writer.close()
        else:
            await getattr(stream, ending)()

    async with Http2Server(handler, certificate) as server:
        async with fetcher(server) as reader:
            once = await reader.fetch("https://a.example/once")
            if ending == "reset":  # the others may be the end of an idle connection
                always = await reader.fetch("https://a.example/always")
        if ending != "reset":
            async with fetcher(server) as reader:
                always = await reader.fetch("https://a.example/always")
    assert once.text == TEXT
    assert always.status is FetchStatus.CONNECT_ERROR
    assert [stream.path for stream in server.requests] == ["/once"] * 2 + ["/always"] * 2


@pytest.mark.parametrize("ending", ["reset", "go_away", "short"])
async def test_a_body_that_ends_too_early_is_truncated(
    certificate: ssl.SSLContext, ending: str
) -> None:
    """By a reset, by the end of the connection, or below its length; asked again once."""

    async def handler(stream: Stream) -> None:
        await stream.begin(content_length=str(len(PAGE)))
        await stream.send(PAGE[:20].encode())
        if ending == "short":
            await stream.raw(frame(DATA, flags=1, stream=stream.number))
        else:
            await getattr(stream, ending)()

    async with Http2Server(handler, certificate) as server, fetcher(server) as reader:
        outcome = await reader.fetch("https://a.example/")
    assert outcome.status is FetchStatus.TRUNCATED
    assert len(server.requests) == 2


async def test_a_connection_that_was_closed_while_idle_is_replaced(
    certificate: ssl.SSLContext,
) -> None:
    """A page is not lost to the moment a server chooses for going away."""

    async def handler(stream: Stream) -> None:
        await stream.answer(PAGE)
        await stream.go_away()

    async with Http2Server(handler, certificate) as server, fetcher(server) as reader:
        pages = [await reader.fetch(f"https://a.example/{n}") for n in range(3)]
    assert [page.text for page in pages] == [TEXT] * 3
    assert server.connections == 3


async def test_http2_through_a_proxy(certificate: ssl.SSLContext) -> None:
    """The tunnel carries whatever the two ends have settled on."""

    async def handler(stream: Stream) -> None:
        await stream.answer(PAGE)

    async with (
        Http2Server(handler, certificate) as server,
        LoopbackProxy({PUBLIC: server.port}) as proxy,
        fetcher(server, fetch_proxy_url=f"http://127.0.0.1:{proxy.port}") as reader,
    ):
        assert (await reader.fetch("https://a.example/")).text == TEXT
    assert len(server.requests) == 1


async def _forever(stream: Stream, data: bytes) -> None:
    while True:
        await stream.raw(data)


def _flood(start: bytes, again: bytes) -> Callable[[Stream], Awaitable[None]]:
    """Sends `start`, then `again` for ever; the number of the stream is put in for 0x7fffffff."""

    async def handler(stream: Stream) -> None:
        marker, number = b"\x7f\xff\xff\xff", stream.number.to_bytes(4, "big")
        await stream.raw(start.replace(marker, number))
        many = again.replace(marker, number)
        await _forever(stream, many * (100_000 // len(many) + 1))

    return handler


_ANY = 0x7FFFFFFF
_OPEN = frame(HEADERS, HTML, flags=4, stream=_ANY)
# A literal field of 4,000 bytes put into the dynamic table, then named again and again: two
# hundred kilobytes of headers from a few bytes.
_BOMB = b"\x40\x01x\x7f\xa1\x1e" + b"y" * 4000 + b"\xbe" * 8000

FLOODS = {
    "continuations": _flood(
        frame(HEADERS, STATUS_200, stream=_ANY), frame(CONTINUATION, b"\0\1a\1b" * 9, stream=_ANY)
    ),
    "empty continuations": _flood(
        frame(HEADERS, STATUS_200, stream=_ANY), frame(CONTINUATION, stream=_ANY)
    ),
    "large continuations": _flood(
        frame(HEADERS, STATUS_200, stream=_ANY),
        frame(CONTINUATION, b"\0\1a\x7f\xe1\x7e" + b"b" * 16_000, stream=_ANY),
    ),
    "header bomb": _flood(b"", frame(HEADERS, HTML + _BOMB, flags=4, stream=_ANY)),
    "header frames": _flood(_OPEN, frame(HEADERS, HTML, flags=4, stream=_ANY)),
    "early hints": _flood(b"", frame(HEADERS, b"\x08\x03103", flags=4, stream=_ANY)),
    "settings": _flood(b"", frame(SETTINGS, b"\0\3\0\0\0\1") + frame(SETTINGS, b"\0\3\0\0\0\x64")),
    "large settings": _flood(b"", frame(SETTINGS, b"\0\3\0\0\0\1" * 2700)),
    "pings": _flood(b"", frame(PING, b"\0" * 8)),
    "pings within the body": _flood(_OPEN, frame(PING, b"\0" * 8)),
    "empty data": _flood(_OPEN, frame(DATA, stream=_ANY)),
    "one byte at a time": _flood(_OPEN, frame(DATA, b"x", stream=_ANY)),
    "padding": _flood(_OPEN, frame(DATA, b"\xfe" + b"\0" * 254, flags=8, stream=_ANY)),
    "unknown frames": _flood(_OPEN, frame(0x77, b"z" * 16_000, stream=_ANY)),
    "data without end": _flood(_OPEN, frame(DATA, b"x" * 16_000, stream=_ANY)),
    "resets of nothing": _flood(b"", frame(RST_STREAM, b"\0\0\0\2", stream=99)),
    "goodbyes": _flood(b"", frame(GOAWAY, b"\0\0\0\1\0\0\0\0")),
    "no status": _flood(frame(HEADERS, b"\x08\x03abc", flags=5, stream=_ANY), frame(PING, b"")),
    "rubbish": _flood(b"", b"\xff\x00\xaa\x55" * 100),
}


async def _attacked(
    certificate: ssl.SSLContext, handler: Callable[[Stream], Awaitable[None]], timeout: float
) -> tuple[FetchOutcome, float, int]:
    """The outcome of reading from such a server, the seconds, and the bytes the program grew."""
    async with Http2Server(handler, certificate) as server, fetcher(server) as reader:
        process = psutil.Process()
        before, started = process.memory_info().rss, time.monotonic()
        outcome = await reader.fetch("https://a.example/", timeout=timeout)
        return outcome, time.monotonic() - started, process.memory_info().rss - before


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_ends_early_and_takes_no_memory(
    certificate: ssl.SSLContext, name: str
) -> None:
    """Each is refused for what it is, long before the deadline, in the same memory."""
    outcome, seconds, growth = await _attacked(certificate, FLOODS[name], 60)
    assert outcome.status in {
        FetchStatus.CONNECT_ERROR,
        FetchStatus.TOO_LARGE,
        FetchStatus.TRUNCATED,
    }
    assert seconds < 30
    assert growth < 40_000_000


async def test_a_trickle_of_headers_or_body_ends_at_the_deadline(
    certificate: ssl.SSLContext,
) -> None:
    """A frame now and then is not a sign of life."""

    def trickle(start: bytes, piece: bytes) -> Callable[[Stream], Awaitable[None]]:
        async def handler(stream: Stream) -> None:
            marker, number = b"\x7f\xff\xff\xff", stream.number.to_bytes(4, "big")
            await stream.raw(start.replace(marker, number))
            with contextlib.suppress(ConnectionError):
                while True:
                    await asyncio.sleep(0.05)
                    await stream.raw(piece.replace(marker, number))

        return handler

    pieces = (b"", frame(PING, b"\0" * 8)), (_OPEN, frame(DATA, b"word ", stream=_ANY))
    for start, piece in pieces:
        outcome, seconds, _ = await _attacked(certificate, trickle(start, piece), 0.5)
        assert outcome.status is FetchStatus.TIMEOUT
        assert seconds < 5
