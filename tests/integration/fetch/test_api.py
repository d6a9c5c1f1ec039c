"""The plain functions and the command, on real connections."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest

from citeflow import (
    FetchStatus,
    afetch_outcome,
    afetch_text,
    afetch_text_and_date,
    fetch_outcome,
    fetch_text,
    fetch_text_and_date,
)
from tests.support.loopback import LoopbackServer, response, serving
from tests.support.pdfs import pdf

TEXT = "Lithium cells lose capacity when repeatedly charged above eighty percent."
DATE = "2020-02-02T08:00:00Z"
PAGE = response(
    f"<html><head><meta content='{DATE}' property=article:published_time></head>"
    f"<body><p>{TEXT}</p><p>{TEXT}</p></body></html>"
)


async def in_thread(function: object, *args: object, **kwargs: object) -> object:
    return await asyncio.to_thread(function, *args, **kwargs)  # type: ignore[arg-type]


async def test_text_and_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions give the parts of the one outcome, async or not, also within a loop."""
    document = response(
        pdf([[TEXT]], info="/CreationDate(D:20200202)"), content_type="application/pdf"
    )
    async with serving({"/": PAGE, "/pdf": document}) as server:
        monkeypatch.setenv("CITEFLOW_FETCH_ALLOWED_INTERNAL_ORIGINS", server.origin)
        url = f"{server.origin}/"
        both = f"{TEXT}\n{TEXT}"
        assert await afetch_text(url) == both
        assert await in_thread(fetch_text, url) == both
        assert await afetch_text_and_date(url) == (both, DATE)
        assert await in_thread(fetch_text_and_date, url) == (both, DATE)
        assert await afetch_text(url, max_chars=20) == TEXT[:20]
        assert await afetch_text_and_date(f"{url}pdf") == (TEXT, None)
        assert (await afetch_outcome(f"{url}pdf")).published_at == "D:20200202"
        assert (await afetch_outcome(url, max_bytes=100)).status is FetchStatus.TOO_LARGE
        gone = await afetch_outcome(f"{url}none")
        assert (gone.status, gone.http_status) == (FetchStatus.HTTP_ERROR, 404)


async def test_a_function_can_be_called_while_a_loop_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From within a coroutine too: the loop waits, nothing breaks."""
    assert fetch_text("https://127.0.0.1/") == ""
    assert fetch_outcome("https://127.0.0.1/").status is FetchStatus.BLOCKED


@pytest.mark.parametrize(
    "url", ["", "plain", "https://a:99999/", "https://a/\0", "ftp://a/", None, 3]
)
def test_no_url_raises(url: str) -> None:
    """What cannot be asked for gives nothing."""
    assert fetch_text(url) == ""
    assert fetch_text_and_date(url) == ("", None)


async def test_http_is_not_read() -> None:
    """Only https, unless the operator allows the origin."""
    async with serving({"/": PAGE}) as server:
        outcome = await afetch_outcome(f"http://1.1.1.1:{server.port}/")
        assert outcome.status is FetchStatus.BLOCKED
        assert (await afetch_outcome("http://1.1.1.1/")).status is FetchStatus.BLOCKED
        assert server.connections == 0


async def test_a_pdf_has_a_time_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the body is seen to be a PDF, its own limit counts; a page's is not prolonged."""
    data = pdf([[TEXT]] * 50)

    async def slow(path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        kind = "application/pdf" if path == "/pdf" else "text/html"
        body = data if path == "/pdf" else b"<p>words</p>" * 1000
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body[:4000])
        await writer.drain()
        await asyncio.sleep(1.0)
        writer.write(body[4000:])

    async with LoopbackServer(slow) as server:
        monkeypatch.setenv("CITEFLOW_FETCH_ALLOWED_INTERNAL_ORIGINS", server.origin)
        page = await afetch_outcome(f"{server.origin}/page", timeout_s=0.5)
        document = await afetch_outcome(f"{server.origin}/pdf", timeout_s=0.5)
        impatient = await afetch_outcome(f"{server.origin}/pdf", timeout_s=5, pdf_timeout_s=0.5)
    assert [o.status for o in (page, document, impatient)] == [
        FetchStatus.TIMEOUT, FetchStatus.OK, FetchStatus.TIMEOUT,
    ]  # fmt: skip


def run(*arguments: str, origin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "citeflow", "fetch", *arguments],
        env={**os.environ, "CITEFLOW_FETCH_ALLOWED_INTERNAL_ORIGINS": origin},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


async def test_the_command() -> None:
    """`citeflow fetch` prints JSON, its exit status and stderr tell a page from a failure."""
    async with serving({"/": PAGE}) as server:
        url = f"{server.origin}/"
        plain = await asyncio.to_thread(run, url, "--max-chars", "20", origin=server.origin)
        whole = await asyncio.to_thread(run, url, "--json-outcome", origin=server.origin)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert json.loads(plain.stdout) == {"url": url, "text": TEXT[:20]}
    outcome = json.loads(whole.stdout)
    assert (outcome["status"], outcome["published_on"]) == ("ok", "2020-02-02")
    started = time.monotonic()
    refused = await asyncio.to_thread(run, "https://127.0.0.1/", "--timeout-s", "2")
    assert time.monotonic() - started < 30
    assert (refused.returncode, json.loads(refused.stdout)["text"]) == (3, "")
    assert refused.stderr.startswith("citeflow: blocked: ")
