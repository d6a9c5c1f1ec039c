"""The SearXNG backend against a server that plays SearXNG."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from citeflow.search import SearchStatus
from citeflow.search.searxng import SearxngBackend
from citeflow.settings import SiteConfig
from tests.support.engines import PlayedEngine, Reply

JSON_DISABLED_PAGE = (
    "<!doctype html>\n<html lang=en>\n<title>403 Forbidden</title>\n<h1>Forbidden</h1>\n"
    "<p>You don&#39;t have the permission to access the requested resource. "
    "It is either read-protected or not readable by the server.</p>\n"
)


def answer(results: list[Any], unresponsive: list[Any] | None = None) -> Reply:
    body = {
        "query": "q",
        "number_of_results": 0,
        "results": results,
        "unresponsive_engines": unresponsive or [],
    }
    return Reply(body=json.dumps(body), headers={"Content-Type": "application/json"})


RESULTS = [
    {
        "title": f"Title {i}",
        "url": f"https://{i}.example/",
        "content": f"Snippet {i}",
        "engine": "x",
    }
    for i in range(8)
]


def backend(engine: PlayedEngine, suffix: str = "") -> SearxngBackend:
    values = {"web_research_searxng_url": engine.origin + suffix}
    return SearxngBackend(SiteConfig(values, environ={}))


@pytest.mark.parametrize(
    ("suffix", "path"),
    [
        ("", "/search"),
        ("/", "/search"),
        ("/searx/", "/searx/search"),
        ("/search", "/search"),
    ],
)
async def test_hits_in_the_order_of_the_answer(suffix: str, path: str) -> None:
    """One request to the endpoint under the base URL; the first k results in order."""
    async with PlayedEngine(answer(RESULTS)) as engine:
        searxng = backend(engine, suffix)
        found = await searxng.search("c++ & rust 日本", 5, 20.0)
        await searxng.aclose()
    assert found.status is SearchStatus.OK
    assert [(h.title, h.url, h.snippet) for h in found.hits] == [
        (f"Title {i}", f"https://{i}.example/", f"Snippet {i}") for i in range(5)
    ]
    (request,) = engine.requests
    assert (request.method, request.path.partition("?")[0]) == ("GET", path)
    assert request.query == "c++ & rust 日本"
    assert "format=json" in request.path


@pytest.mark.parametrize(
    ("reply", "status", "detail"),
    [
        (answer([]), SearchStatus.EMPTY, ""),
        (Reply(403, JSON_DISABLED_PAGE), SearchStatus.UNAVAILABLE, "JSON format is disabled"),
        (Reply(403, "no"), SearchStatus.BLOCKED, "HTTP 403"),
        (Reply(401), SearchStatus.BLOCKED, "HTTP 401"),
        (Reply(429), SearchStatus.RATE_LIMITED, "HTTP 429"),
        (Reply(502), SearchStatus.UNREACHABLE, "HTTP 502"),
        (Reply(301, headers={"Location": "https://x.example/"}), SearchStatus.UNAVAILABLE, "301"),
        (Reply(200, "<html>a page</html>"), SearchStatus.UNAVAILABLE, "not JSON"),
        (Reply(200, ""), SearchStatus.UNAVAILABLE, "not JSON"),
        (Reply(200, "[" * 100_000), SearchStatus.UNAVAILABLE, "not JSON"),
        (Reply(200, "[]"), SearchStatus.UNAVAILABLE, "no list of results"),
        (Reply(200, '{"results": null}'), SearchStatus.UNAVAILABLE, "no list of results"),
        (Reply(200, b"x" * 5_000_000), SearchStatus.UNAVAILABLE, "larger than the cap"),
        (
            Reply(200, b"\x1f\x8b", {"Content-Encoding": "gzip"}),
            SearchStatus.UNAVAILABLE,
            "compressed",
        ),
        (Reply(close=True), SearchStatus.UNREACHABLE, "broke off"),
        (
            answer([{"url": "javascript:x"}, {"title": "no url"}, "text", {"url": 5}]),
            SearchStatus.UNAVAILABLE,
            "no usable links",
        ),
        (answer([], [["brave", "Suspended: CAPTCHA"]]), SearchStatus.CHALLENGED, "brave"),
        (
            answer([], [["a", "timeout"], ["b", "Suspended: too many requests"]]),
            SearchStatus.RATE_LIMITED,
            "a: timeout; b: Suspended: too many requests",
        ),
        (answer([], [["a", "access denied"]]), SearchStatus.BLOCKED, "a: access denied"),
        (answer([], [["a", "timeout"]]), SearchStatus.TIMEOUT, "a: timeout"),
        (answer([], [["a", "parsing error"], 7]), SearchStatus.UNREACHABLE, "a: parsing error"),
    ],
)
async def test_every_answer_has_its_status(reply: Reply, status: SearchStatus, detail: str) -> None:
    """Refusals, a disabled JSON format, silent engines and an honest nothing are told apart."""
    async with PlayedEngine(reply) as engine:
        searxng = backend(engine)
        found = await searxng.search("q", 5, 20.0)
        await searxng.aclose()
    assert (found.status, found.hits) == (status, ())
    assert detail in found.detail
    assert len(engine.requests) == 1


async def test_unresponsive_engines_do_not_spoil_hits() -> None:
    """Hits are hits, whoever else failed, and unusable results between them are skipped."""
    reply = answer([{"url": "ftp://x"}, *RESULTS[:2], None], [["brave", "timeout"]])
    async with PlayedEngine(reply) as engine:
        searxng = backend(engine)
        found = await searxng.search("q", 5, 20.0)
        await searxng.aclose()
    assert (found.status, len(found.hits)) == (SearchStatus.OK, 2)


async def test_retry_after_is_read() -> None:
    """The wait that the instance asks for is passed on."""
    async with PlayedEngine(Reply(429, headers={"Retry-After": "30"})) as engine:
        searxng = backend(engine)
        found = await searxng.search("q", 5, 20.0)
        await searxng.aclose()
    assert found.retry_after == 30.0


@pytest.mark.parametrize("reply", [Reply(delay=60.0), Reply(body="x" * 1000, drip=0.1)])
async def test_slow_instance_is_cut(reply: Reply) -> None:
    """The timeout is for the whole exchange, however steadily the bytes drip."""
    async with PlayedEngine(reply) as engine:
        searxng = backend(engine)
        started = time.monotonic()
        found = await searxng.search("q", 5, 1.0)
        elapsed = time.monotonic() - started
        await searxng.aclose()
    assert found.status is SearchStatus.TIMEOUT
    assert elapsed < 10.0


async def test_ambient_proxies_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only citeflow's own settings say where requests go."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with PlayedEngine(answer(RESULTS)) as engine:
        searxng = backend(engine)
        found = await searxng.search("q", 5, 20.0)
        await searxng.aclose()
    assert found.status is SearchStatus.OK


@pytest.mark.parametrize(
    "url", ["ftp://x/", "localhost:8080", "http://", "http://[::1", "http://a:b/"]
)
async def test_unusable_base_url_is_an_answer(url: str) -> None:
    """A typo in the setting is reported as such."""
    searxng = SearxngBackend(SiteConfig({"web_research_searxng_url": url}, environ={}))
    assert searxng.available()
    found = await searxng.search("q", 5, 5.0)
    await searxng.aclose()
    assert found.status is SearchStatus.UNAVAILABLE
    assert "web_research_searxng_url" in found.detail


async def test_credentials_travel_in_a_header_only() -> None:
    """A user and password of the base URL are sent, and are in no address that anybody shows."""
    async with PlayedEngine(answer(RESULTS)) as engine:
        url = engine.origin.replace("http://", "http://us%20er:p%40ss@")
        searxng = SearxngBackend(SiteConfig({"web_research_searxng_url": url}, environ={}))
        found = await searxng.search("q", 5, 5.0)
        await searxng.aclose()
    assert found.status is SearchStatus.OK
    (request,) = engine.requests
    assert request.headers["authorization"] == "Basic dXMgZXI6cEBzcw=="
    assert searxng.endpoint == f"{engine.origin}/search"


async def test_a_flood_of_nonsense_does_not_keep_the_loop() -> None:
    """Two megabytes of results without links are an unusable answer, at once."""
    body = json.dumps({"results": [{"url": "x"}] * 120_000})
    async with PlayedEngine(Reply(body=body)) as engine:
        started = time.thread_time()
        found = await backend(engine).search("q", 5, 20.0)
        assert time.thread_time() - started < 1.0
    assert found.status is SearchStatus.UNAVAILABLE
