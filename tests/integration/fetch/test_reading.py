"""Bodies, types, encodings, deadlines and extraction, on real connections."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import gzip
import hashlib
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import brotli
import httpcore
import psutil
import pytest

from citeflow.fetch import FetchOutcome, FetchStatus, PageFetcher, build_crawler_ua
from citeflow.fetch import fetcher as fetcher_module
from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import ExtractRequest
from citeflow.fetch.extract import extract_page
from citeflow.fetch.fetcher import failure_of
from citeflow.fetch.limits import EXTRACT_LIMITS
from citeflow.settings import SiteConfig
from citeflow.workers import WorkerPool
from tests.support.failure_pages import PAGES
from tests.support.loopback import Handler, LoopbackServer, response, serving
from tests.support.pdfs import pdf

TODAY = datetime.date(2026, 5, 1)

SENTENCE = "Lithium cells lose capacity when repeatedly charged above eighty percent."
HTML = f"<html><head><title>Cells</title></head><body><p>{SENTENCE}</p></body></html>"


async def fetch_all(server: LoopbackServer, *paths: str, **values: object) -> list[FetchOutcome]:
    config = SiteConfig({"fetch_allowed_internal_origins": server.origin, **values}, environ={})
    async with PageFetcher(config) as reader:
        return list(await asyncio.gather(*(reader.fetch(server.origin + p) for p in paths)))


async def fetch_one(answer: bytes, **values: object) -> FetchOutcome:
    async with serving({"/": answer}) as server:
        return (await fetch_all(server, "/", **values))[0]


async def fetch_from(handler: Handler, **values: object) -> FetchOutcome:
    async with LoopbackServer(handler) as server:
        return (await fetch_all(server, "/", **values))[0]


async def test_an_outcome_is_complete() -> None:
    """Text, title, hash, types, times and the stage that found the text are all there."""
    outcome = await fetch_one(response(HTML))
    assert dataclasses.replace(outcome, url="", final_url="", fetched_at=0, elapsed_ms=0) == (
        FetchOutcome(
            FetchStatus.OK,
            "",
            http_status=200,
            content_type="text/html",
            charset="utf-8",
            title="Cells",
            text=SENTENCE,
            content_sha256=hashlib.sha256(SENTENCE.encode()).hexdigest(),
            stage=outcome.stage,
        )
    )
    assert outcome.stage in ("trafilatura", "justext", "resiliparse")
    assert abs(outcome.fetched_at - time.time()) < 60
    assert outcome.elapsed_ms > 0


@pytest.mark.parametrize(
    ("coding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotli.compress)],
)
async def test_compressed_pages_are_read(coding: str, encode: object) -> None:
    """Each coding that is asked for is understood."""
    body = encode(HTML.encode())  # type: ignore[operator]
    outcome = await fetch_one(response(body, headers=[("Content-Encoding", coding)]))
    assert outcome.text == SENTENCE


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "gzip, gzip, gzip"])
async def test_a_body_that_is_not_what_its_coding_says(coding: str) -> None:
    """A broken or unknown coding is a decode error, never text."""
    outcome = await fetch_one(response(HTML, headers=[("Content-Encoding", coding)]))
    assert (outcome.status, outcome.text) == (FetchStatus.DECODE_ERROR, "")


async def test_a_large_body_stops_at_the_cap() -> None:
    """A body without a length is cut off at the cap, long before its 60 MiB are sent."""
    sent = 0

    async def endless(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        for _ in range(60 * 16):
            writer.write(b"word " * 13_107)
            await writer.drain()
            sent += 65_535
        writer.close()

    outcome = await fetch_from(endless)
    assert outcome.status is FetchStatus.TOO_LARGE
    assert sent < 20_000_000


async def test_a_declared_length_above_the_cap_is_not_read() -> None:
    """A Content-Length above the cap ends the fetch at the headers."""
    outcome = await fetch_one(response(b"a" * 2000), fetch_max_body_bytes=1000)
    assert outcome.status is FetchStatus.TOO_LARGE


@pytest.mark.parametrize("layers", [1, 2])
async def test_a_compression_bomb_stops_at_the_cap(layers: int) -> None:
    """A small body that inflates to a large one is too large, also through two layers."""
    body = b"word " * 6_000_000
    for _ in range(layers):
        body = gzip.compress(body)
    headers = [("Content-Encoding", ", ".join(["gzip"] * layers))]
    outcome = await fetch_one(response(body, headers=headers))
    assert outcome.status is FetchStatus.TOO_LARGE


@pytest.mark.parametrize("part", ["nothing", "status", "headers", "body"])
async def test_the_deadline_is_for_the_whole_fetch(part: str) -> None:
    """A server that keeps sending a little, anywhere, is cut off at the total time."""

    async def drip(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        piece = b"x"
        if part == "headers":
            writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        elif part == "body":
            writer.write(response(b"", content_type="text/html")[:17])
            writer.write(b"Content-Type: text/html\r\n\r\n<html><p>")
        elif part == "status":
            writer.write(b"HTTP/1.1 200 ")
        else:
            piece = b""
        for _ in range(200):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.05)

    start = time.monotonic()
    outcome = await fetch_from(drip, web_research_fetch_timeout_seconds=0.5)
    assert outcome.status is FetchStatus.TIMEOUT
    assert time.monotonic() - start < 5


async def test_the_timeout_of_a_call_overrides_the_setting() -> None:
    """fetch(timeout=...) bounds one page."""

    async def silent(_path: str, _headers: dict[str, str], _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(100)

    async with LoopbackServer(silent) as server:
        config = SiteConfig({"fetch_allowed_internal_origins": server.origin}, environ={})
        async with PageFetcher(config) as reader:
            outcome = await reader.fetch(server.origin, timeout=0.2)
    assert outcome.status is FetchStatus.TIMEOUT


@pytest.mark.parametrize("status", ["204 No Content", "301 Moved", "403 Forbidden", "404 Not Found",
                                    "429 Too Many Requests", "500 Oops", "503 Busy"])  # fmt: skip
async def test_only_status_200_is_a_page(status: str) -> None:
    """Other statuses are named and carry no text, whatever their body says."""
    body = "" if status.startswith("204") else HTML
    outcome = await fetch_one(response(body, status=status))
    assert (outcome.status, outcome.text) == (FetchStatus.HTTP_ERROR, "")
    assert outcome.http_status == int(status[:3])


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html", HTML, SENTENCE),
        ("application/xhtml+xml; charset=utf-8", '<?xml version="1.0"?>' + HTML, SENTENCE),
        ("text/xml", f"<doc><p>{SENTENCE}</p></doc>", SENTENCE),
        ("TEXT/PLAIN; Charset=UTF-8", SENTENCE, SENTENCE),
        ("text/plain", "<!DOCTYPE html>" + HTML, SENTENCE),
        ("application/json", f'{{"text": "{SENTENCE}"}}', f'{{"text": "{SENTENCE}"}}'),
        (None, "<!-- generated -->\n" + HTML, SENTENCE),
        ("application/octet-stream", "<!doctype html>" + HTML, SENTENCE),
    ],
)
async def test_types_that_are_read(content_type: str | None, body: str, text: str) -> None:
    """HTML, XML, plain text and JSON are read; a missing type is told from the bytes."""
    outcome = await fetch_one(response(body, content_type=content_type))
    assert (outcome.status, outcome.text) == (FetchStatus.OK, text)


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/pdf", b"\x7fELF words words words words"),
        ("image/png", PNG),
        ("text/html", PNG),
        ("text/plain", b"words\0\0\0\0 and more words than a few, to be sure of it"),
        ("text/html", b"PK\x03\x04 words and words and words"),
        ("video/mp4", b"words"),
        ("application/javascript", b"var words = 1"),
        ("image/svg+xml", b"<svg><text>words and words and words</text></svg>"),
        ("application/octet-stream", b"words and words and words"),
        (None, b"words and words and words"),
        ("nonsense", HTML.encode()),
    ],
)
async def test_types_that_are_not_read(content_type: str | None, body: bytes) -> None:
    """What is not text by its type, or not by its bytes, is named and yields none."""
    outcome = await fetch_one(response(body, content_type=content_type))
    assert (outcome.status, outcome.text) == (FetchStatus.UNSUPPORTED_TYPE, "")


async def test_the_encoding_in_a_meta_tag_is_found() -> None:
    """A Shift-JIS page that says so only in its meta tag yields the real text."""
    text = "日本語のページです。これは文字コードを確かめるための文章であり、長さも十分です。"
    html = f'<html><head><meta charset="Shift_JIS"></head><body><p>{text}</p></body></html>'
    outcome = await fetch_one(response(html.encode("shift_jis"), content_type="text/html"))
    assert (outcome.text, outcome.charset) == (text, "cp932")


async def test_unreadable_text_is_mojibake_not_a_source() -> None:
    """Text full of replacement characters is not citable."""
    text = "caf\ufffd au lait \ufffd la carte " * 20
    html = f"<html><body><p>{text}</p></body></html>"
    outcome = await fetch_one(response(html))
    assert (outcome.status, outcome.text) == (FetchStatus.MOJIBAKE, "")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html></html>",
        "<!-- only a comment -->",
        "<html><body><nav><a href=/>Home</a> <a href=/a>About</a></nav></body></html>",
        "   \n ",
    ],
)
async def test_a_page_without_main_text_is_empty(body: str) -> None:
    """A page with nothing to read is EMPTY, not OK with nothing."""
    outcome = await fetch_one(response(body))
    assert (outcome.status, outcome.text, outcome.content_sha256) == (FetchStatus.EMPTY, "", "")


async def test_text_is_cut_at_the_setting_and_says_so() -> None:
    """web_research_max_content_chars is a cap in code points."""
    html = f"<html><body><article>{f'<p>{SENTENCE}</p>' * 50}</article></body></html>"
    short = await fetch_one(response(html), web_research_max_content_chars=300)
    assert (290 < len(short.text) <= 300, short.truncated) == (True, True)
    plain = await fetch_one(
        response("\U0001f600" * 5 + SENTENCE * 9, content_type="text/plain"),
        web_research_max_content_chars=100,
    )
    assert plain.text == ("\U0001f600" * 5 + SENTENCE * 9)[:100].rstrip()


async def test_hidden_characters_do_not_come_through() -> None:
    """Control, bidirectional and tag characters are stripped from text and title."""
    hidden = "\u202e\u2066\u200b\ufeff\U000e0041\x01\x1b"
    html = f"<title>Ce{hidden}lls</title><p>{SENTENCE[:20]}{hidden}{SENTENCE[20:]}</p>" + (
        f"<p>{SENTENCE}</p>" * 5
    )
    outcome = await fetch_one(response(html))
    assert (outcome.title, outcome.text.split("\n")[0]) == ("Cells", SENTENCE)


async def test_many_pages_at_once_all_arrive() -> None:
    """Concurrency loses no page: sixty at once give the texts that one by one would."""
    pages = {f"/{n}": response(HTML.replace("Lithium", f"Kind {n} of")) for n in range(60)}
    async with serving(pages) as server:
        outcomes = await fetch_all(server, *pages)
    assert [o.text for o in outcomes] == [
        SENTENCE.replace("Lithium", f"Kind {n} of") for n in range(60)
    ]


async def test_a_connection_serves_the_next_page_of_the_site() -> None:
    """Pages of one site read one after the other share a connection."""
    async with serving({"/": response(HTML)}) as server:
        config = SiteConfig({"fetch_allowed_internal_origins": server.origin}, environ={})
        async with PageFetcher(config) as reader:
            for _ in range(3):
                assert (await reader.fetch(server.origin)).ok
        assert server.connections == 1


async def test_a_connection_the_server_closed_meanwhile_costs_no_page() -> None:
    """A request that meets the end of an idle connection is sent again on a new one."""
    served = 0

    async def closing(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        nonlocal served
        served += 1
        if served == 2:  # the request on the kept connection: close instead of an answer
            writer.close()
        else:
            writer.write(response(HTML))

    async with LoopbackServer(closing) as server:
        config = SiteConfig({"fetch_allowed_internal_origins": server.origin}, environ={})
        async with PageFetcher(config) as reader:
            assert [(await reader.fetch(server.origin)).ok for _ in range(3)] == [True] * 3
        assert server.connections == 2


def connections_to(port: int) -> int:
    found = psutil.Process().net_connections(kind="tcp")
    return sum(1 for c in found if c.raddr and c.raddr.port == port and c.status != "TIME_WAIT")


async def test_cancelled_and_late_fetches_leave_no_connection_behind() -> None:
    """Whatever moment a fetch is ended at, its connection is closed."""

    async def slow(path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(100 if path == "/never" else 0)
        writer.write(response(HTML))

    async with LoopbackServer(slow) as server:
        config = SiteConfig({"fetch_allowed_internal_origins": server.origin}, environ={})
        async with PageFetcher(config) as reader:
            for n in range(60):
                task = asyncio.create_task(reader.fetch(server.origin))
                await asyncio.sleep(n % 12 / 3000)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await asyncio.gather(
                *(reader.fetch(server.origin + "/never", timeout=0.1 + n / 200) for n in range(20))
            )
            assert connections_to(server.port) <= 1
            assert (await reader.fetch(server.origin)).ok
        assert connections_to(server.port) == 0


@contextmanager
def workers(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    pool = WorkerPool("tests.support.extract_targets:extract_or_misbehave", size=2)
    monkeypatch.setattr(fetcher_module, "_workers", lambda: pool)
    limits = dataclasses.replace(EXTRACT_LIMITS, seconds=seconds)
    monkeypatch.setattr(fetcher_module, "EXTRACT_LIMITS", limits)
    try:
        yield
    finally:
        pool.close()


@pytest.mark.parametrize("way", ["hang", "crash", "raise"])
async def test_an_extraction_gone_wrong_costs_one_page(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the page whose worker hangs or dies reports it; the others get their text."""
    pages = {f"/{n}": response(HTML) for n in range(8)}
    pages["/3"] = response(HTML + f"<p>please {way}</p>")
    with workers(monkeypatch, seconds=5.0):
        async with serving(pages) as server:
            outcomes = await fetch_all(server, *pages)
    expected = [FetchStatus.OK] * 8
    expected[3] = FetchStatus.EXTRACT_FAILED
    assert [outcome.status for outcome in outcomes] == expected, [o.detail for o in outcomes]


async def test_a_worker_and_a_call_in_line_extract_the_same() -> None:
    """The text of a page does not depend on where it was extracted."""
    bodies = [HTML, "", "<p>" + "caf\xe9 " * 90, "<table><tr><td>cell " * 50, SENTENCE * 99]
    pages = {f"/{n}": response(body) for n, body in enumerate(bodies)}
    async with serving(pages) as server:
        outcomes = await fetch_all(server, *pages)
    for body, outcome in zip(bodies, outcomes, strict=True):
        page = extract_page(ExtractRequest(body.encode(), Kind.HTML, "utf-8", 2000, TODAY))
        assert (outcome.text, outcome.title, outcome.charset, outcome.stage, outcome.truncated) == (
            page.text,
            page.title,
            page.charset,
            page.stage,
            page.truncated,
        )


async def test_a_cancelled_fetch_is_cancelled() -> None:
    """Cancellation is the one thing that leaves fetch as an exception, and it leaves nothing."""

    async def silent(_path: str, _headers: dict[str, str], _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(100)

    async with LoopbackServer(silent) as server:
        config = SiteConfig({"fetch_allowed_internal_origins": server.origin}, environ={})
        async with PageFetcher(config) as reader:
            task = asyncio.create_task(reader.fetch(server.origin))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\0\0\0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Header: yes\r\n" * 20_000 + b"\r\n",
    ],
)
async def test_broken_servers_are_outcomes(answer: bytes) -> None:
    """An answer that breaks the protocol is a connection error."""

    async def broken(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    assert (await fetch_from(broken)).status is FetchStatus.CONNECT_ERROR


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_body_that_ends_too_early_is_truncated(coding: str, framing: str) -> None:
    """Half a page is not a page, however its end was announced."""
    body = gzip.compress(HTML.encode()) if coding == "gzip" else HTML.encode()
    half = body[: len(body) // 2]
    frame = f"Content-Length: {len(body)}" if framing == "length" else "Transfer-Encoding: chunked"
    data = half if framing == "length" else b"%x\r\n%s\r\n" % (len(half), half)

    async def cut(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 200 OK\r\n{frame}\r\nContent-Encoding: {coding}\r\n"
        writer.write(head.encode() + b"Content-Type: text/html\r\n\r\n" + data)
        await writer.drain()
        writer.close()

    outcome = await fetch_from(cut)
    assert (outcome.status, outcome.text) == (FetchStatus.TRUNCATED, "")


@pytest.mark.parametrize(
    "content_type", ["application/pdf", "application/octet-stream", "text/html", "text/plain"]
)
async def test_a_pdf_is_read_whatever_it_is_called(content_type: str) -> None:
    """The first bytes decide, also behind a few of rubbish."""
    data = pdf([[SENTENCE]], info="/CreationDate(D:20200202103000Z)")
    for body in (data, b"\r\n" + data):
        outcome = await fetch_one(response(body, content_type=content_type))
        assert (outcome.status, outcome.text, outcome.published_on) == (
            FetchStatus.OK,
            SENTENCE,
            "2020-02-02",
        )


async def test_the_larger_cap_is_for_what_is_declared_and_begins_as_a_pdf() -> None:
    """Neither the type nor the first bytes alone raise the cap."""
    data = pdf([[SENTENCE]] * 2_000)
    caps = {"fetch_max_body_bytes": 50_000, "fetch_max_pdf_bytes": 2_000_000}
    page = b"<html>" + b"x" * 500_000
    assert 100_000 < len(data) < 2_000_000
    outcomes = [
        await fetch_one(response(body, content_type=content_type), **caps)
        for body, content_type in (
            (data, "application/pdf"), (data, "text/html"), (page, "application/pdf"),
        )
    ]  # fmt: skip
    statuses = [outcome.status for outcome in outcomes]
    assert statuses == [FetchStatus.OK, FetchStatus.TOO_LARGE, FetchStatus.TOO_LARGE]


async def test_a_pdf_bomb_costs_one_page() -> None:
    """A small PDF that inflates to hundreds of megabytes ends in an outcome; the next is read."""
    bomb = pdf([[]], content=b" " * 400_000_000)
    assert len(bomb) < 1_000_000
    outcome = await fetch_one(response(bomb, content_type="application/pdf"))
    assert not outcome.ok
    assert (await fetch_one(response(HTML))).ok


@pytest.mark.parametrize("status", ["403 Forbidden", "503 Service Unavailable", "429 Too Many"])
async def test_a_browser_check_with_an_error_status_is_named(status: str) -> None:
    """A captcha that comes with a refusal is a challenge, a plain refusal is not."""
    check = PAGES["challenged"]["browser check"]
    outcome = await fetch_one(response(check, status=status))
    assert (outcome.status, outcome.http_status) == (FetchStatus.CHALLENGED, int(status[:3]))
    header = response("no", status=status, headers=[("cf-mitigated", "challenge")])
    assert (await fetch_one(header)).status is FetchStatus.CHALLENGED
    assert (await fetch_one(response(HTML, status=status))).status is FetchStatus.HTTP_ERROR


@pytest.mark.parametrize("kind", PAGES)
async def test_each_named_failure_arrives(kind: str) -> None:
    """What extraction calls a page is what the caller is told, and there is no text."""
    for page in PAGES[kind].values():
        outcome = await fetch_one(response(page))
        assert (outcome.status.value, outcome.text, outcome.http_status) == (kind, "", 200)
        assert outcome.detail


async def test_the_user_agent_is_sent() -> None:
    """Requests say who sends them, with the operator's contact when there is one."""
    async with serving({"/": response(HTML)}) as server:
        await fetch_all(server, "/", crawler_contact_url=" https://x.example/bot ")
    name = "Mozilla/5.0 (compatible; CiteflowContentResearcher/1.0; +https://x.example/bot)"
    assert server.requests[0][1]["user-agent"] == name
    plain = build_crawler_ua(SiteConfig({"crawler_contact_url": " "}, environ={}))
    assert plain == "Mozilla/5.0 (compatible; CiteflowContentResearcher/1.0)"
    hostile = build_crawler_ua(SiteConfig({"crawler_contact_url": "a\r\nX: é"}, environ={}))
    assert hostile == "Mozilla/5.0 (compatible; CiteflowContentResearcher/1.0; +aX: )"


def test_every_exception_of_the_http_library_has_a_status() -> None:
    """The one place that translates exceptions knows all that the library raises on a request."""
    roots = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)
    for name in dir(httpcore):
        kind = getattr(httpcore, name)
        if isinstance(kind, type) and issubclass(kind, roots):
            assert failure_of(kind("x"))[0] is not FetchStatus.ERROR
    assert failure_of(KeyError("x"))[0] is FetchStatus.ERROR
