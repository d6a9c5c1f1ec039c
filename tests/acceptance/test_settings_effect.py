"""Every setting of the specification is read at each call: a stored value takes effect at once.

Services are built once, with a live `SiteConfig`; then a value appears in the database's layer, as
it does while a program runs, and the next call of the same service behaves otherwise.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from citeflow import research
from citeflow.fetch import PageFetcher
from citeflow.research import ResearchService, research_topic
from citeflow.search import SearchChain
from citeflow.search.duckduckgo import DuckDuckGoBackend
from citeflow.search.outcome import SearchHit
from citeflow.settings import SiteConfig
from citeflow.web import WebResearcher
from tests.support.engines import PlayedEngine, Reply
from tests.support.loopback import FakeNetwork, LoopbackServer, response
from tests.support.research import F1, F2, F3, F4, F5, FakeSearch, FakeWeb, result

TOPIC = "Lithium battery capacity"
SEARXNG = json.dumps({"results": [{"title": "T", "url": "https://a.example/", "content": F1}]})
LONG = " ".join([F1, F2, F3, F4, F5])

Observe = Callable[[], Awaitable[object]]


def shown(report: Any) -> object:
    """What a change of judging or rendering can change."""
    return (
        report.corpus,
        [(source.url, round(source.overall_score, 6)) for source in report.sources],
        [(drop.url, drop.reason) for drop in report.dropped],
    )


def web_results() -> list[dict[str, Any]]:
    """Five sources that differ in host, length, date and likeness; one could not be read."""
    near = F2.replace("municipal", "Several").replace("annually", "yearly")
    return [
        result("lab.example.edu", F1, content=LONG),
        result("stackoverflow.com", "3 days ago - " + F2, content=LONG[::-1]),
        result("b.example", "20 days ago - " + F3 + " " + F4 + " " + F5, content=F3 * 8),
        result("c.example", near + " More words follow here.", content=F4 * 8),
        result("d.example", F5, content=""),
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("known_references_json", '{"lithium": [{"title": "X", "url": "https://x.example/"}]}'),
        ("research_extract_web_content", "false"),
        ("research_require_fetched_source_for_citation", "false"),
        ("research_web_content_chars_per_source", "40"),
        ("research_min_snippet_length", "120"),
        ("research_min_snippet_words", "20"),
        ("research_dedup_similarity_threshold", "0.05"),
        ("research_tier1_domains", "b.example"),
        ("research_tier2_domains", "b.example"),
        ("research_credibility_weight", "0.9"),
        ("research_snippet_quality_weight", "0.9"),
        ("research_recency_weight", "0.9"),
        ("research_uniqueness_weight", "0.9"),
        ("research_search_rank_weight", "0.9"),
        ("research_recency_fresh_days", "1"),
        ("research_recency_recent_days", "10"),
    ],
)
async def test_judging_and_rendering(key: str, value: str) -> None:
    """The corpus, its order or its scores change with the next call."""
    config = SiteConfig(environ={})
    service = ResearchService(site_config=config, web=FakeWeb(web_results()))
    before = shown(await service.research(TOPIC))
    assert shown(await service.research(TOPIC)) == before
    config.reload_database({key: value})
    assert shown(await service.research(TOPIC)) != before
    config.reload_database({})
    assert shown(await service.research(TOPIC)) == before


async def test_sources_of_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """writer_rag_research_topic_max_sources: how many web sources one question has."""
    monkeypatch.setattr(
        research, "WebResearcher", lambda **_: FakeWeb(web_results()), raising=False
    )
    config = SiteConfig(environ={})
    counts = []
    for value in ("1", "3"):
        config.reload_database({"writer_rag_research_topic_max_sources": value})
        corpus = await research_topic(TOPIC, site_config=config)
        counts.append(corpus.count("Source text:"))
    assert counts == [1, 3]


class Pages(LoopbackServer):
    """A long page for any path, after `delay` seconds; counts how many are served at once."""

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__(self._page)
        self._delay = delay
        self.now = self.most = 0

    async def _page(
        self, _path: str, _headers: dict[str, str], writer: asyncio.StreamWriter
    ) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self._delay)
        self.now -= 1
        writer.write(response(f"<html><body><article><p>{LONG * 3}</p></article></body></html>"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("web_research_max_content_chars", "300"),
        ("web_research_fetch_timeout_seconds", "0.2"),
        ("crawler_contact_url", "https://who.example/we-are"),
        ("url_scraper_allow_internal_ips", "true"),
    ],
)
async def test_reading(key: str, value: str) -> None:
    """The length read, the time allowed, the name given, the addresses allowed."""
    config = SiteConfig({"fetch_host_interval_ms": 0, "fetch_respect_robots": False}, environ={})
    async with Pages(delay=0.6 if "timeout" in key else 0.0) as server:
        public = {"a.example": [["93.184.216.34"]], "intra.example": [["10.0.0.1"]]}
        ports = {"93.184.216.34": server.port, "10.0.0.1": server.port}
        net = FakeNetwork(public, ports)
        async with PageFetcher(config, resolve=net.resolve, dial=net) as fetcher:

            async def observe() -> object:
                host = "intra" if "internal" in key else "a"
                page = await fetcher.fetch(f"http://{host}.example/{time.monotonic_ns()}")
                agents = [headers.get("user-agent") for _, headers in server.requests[-1:]]
                return page.status, len(page.text), agents

            before = await observe()
            assert await observe() == before
            config.reload_database({key: value})
            assert await observe() != before


async def test_pages_at_once() -> None:
    """web_research_max_concurrent: pages that one search reads at once; 0 means one."""
    async with Pages(delay=0.1) as server:
        config = SiteConfig(
            {
                "fetch_host_interval_ms": 0,
                "fetch_host_concurrency": 50,
                "fetch_respect_robots": False,
                "fetch_allowed_internal_origins": server.origin,
            },
            environ={},
        )
        hits = [SearchHit("T", f"{server.origin}/{number}", F1) for number in range(8)]
        async with PageFetcher(config) as fetcher:
            web = WebResearcher(site_config=config, search=FakeSearch(*hits), fetcher=fetcher)
            seen = []
            for value in ("0", "2", "5"):
                config.reload_database({"web_research_max_concurrent": value})
                server.most = 0
                await web.search("q", 8)
                seen.append(server.most)
    assert seen == [1, 2, 5]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("web_research_ddg_retry_attempts", ("1", "3")),
        ("web_research_ddg_retry_base_delay_ms", ("0", "1500")),
        ("web_research_search_timeout_seconds", ("1", "5")),
    ],
)
async def test_searching(key: str, values: tuple[str, str]) -> None:
    """How often a failing engine is asked, how soon again, and how long one may take."""
    failing = "retry" in key
    async with PlayedEngine(Reply(503) if failing else Reply(body=SEARXNG, delay=2.0)) as engine:
        config = SiteConfig(
            {
                "web_research_backends": "searxng",
                "web_research_searxng_url": engine.origin,
                "web_research_circuit_failures": 100,
                "web_research_ddg_requests_per_minute": 0,
            },
            environ={},
        )
        seen: list[tuple[str, int, float]] = []
        ddg = DuckDuckGoBackend(config, engine_url=engine.url)
        async with SearchChain(config, backends=[ddg] if failing else None) as chain:
            for value in values:
                quick = {"web_research_ddg_retry_base_delay_ms": "0"} | {key: value}
                config.reload_database(quick)
                asked, started = len(engine.requests), time.monotonic()
                outcome = await chain.search("q", timeout=20)
                took = time.monotonic() - started
                seen.append((outcome.status.value, len(engine.requests) - asked, took))
    (status, asked, took), (other_status, other_asked, other_took) = seen
    if key.endswith("attempts"):
        assert (asked, other_asked) == (1, 3)
    elif key.endswith("delay_ms"):
        assert other_took > took + 0.5
    else:
        assert (status, other_status) == ("timeout", "ok")
