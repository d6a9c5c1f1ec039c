"""What a page says of itself, on its way from the fetch to the context."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta

import pytest

import schemas
from agents import Inbound
from agents.fetch import FetchAgent
from agents.score import build_context
from citeflow.fetch import FetchOutcome, FetchStatus
from citeflow.research import ResearchService
from citeflow.search.outcome import SearchHit
from citeflow.settings import SiteConfig
from citeflow.web import WebResearcher
from tests.support.research import F1, F2, F3, FakeSearch

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOPIC = "lithium cells and canal building"
HITS = [
    SearchHit(f"Title {n}", f"https://h{n}.example/", text) for n, text in enumerate((F1, F2, F3))
]
TEXTS = [f"First line of page {n}.\n{HITS[n].snippet}\nLithium cells, page {n}." for n in range(3)]


def outcome(number: int) -> FetchOutcome:
    """Page 0 with all it can have, page 1 with nothing, page 2 unread."""
    if number == 2:
        return FetchOutcome(FetchStatus.HTTP_ERROR, HITS[2].url, http_status=404)
    text = TEXTS[number]
    plain = FetchOutcome(
        FetchStatus.OK, HITS[number].url, text=text, fetched_at=NOW.timestamp(),
        content_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )  # fmt: skip
    if number == 1:
        return plain
    return FetchOutcome(
        FetchStatus.OK, HITS[0].url, text=text, fetched_at=NOW.timestamp(),
        content_sha256=plain.content_sha256, published_at="1 May 2024",
        published_on="2024-05-01", date_confidence="medium", cached=True,
    )  # fmt: skip


class Pages:
    """Reads the pages above."""

    async def fetch(self, url: str, *, timeout: float | None = None) -> FetchOutcome:
        return outcome(next(n for n, hit in enumerate(HITS) if hit.url == url))


async def through_the_agents(settings: dict[str, str]) -> schemas.ContextReady:
    hits = schemas.SearchHits(
        event_id="e", request_id="r", topic=TOPIC, category="c", max_results=5, requested_at=NOW,
        searched_at=NOW, deadline_at=NOW + timedelta(seconds=60), status="ok", pages_wanted=True,
        hits=tuple(
            schemas.Hit(rank=n, title=hit.title, url=hit.url, snippet=hit.snippet)
            for n, hit in enumerate(HITS)
        ),
        settings=settings,
    )  # fmt: skip
    pages: dict[int, schemas.PageFetched] = {}

    async def emit(record: schemas.Record) -> None:
        # As on the wire: encoded, and decoded by the next stage.
        page = schemas.decode(schemas.encode(record), schemas.PageFetched)
        pages[page.rank] = page

    agent = FetchAgent(
        fetcher=Pages(),
        site_config=SiteConfig(settings, environ={}),
        clock=lambda: NOW,
        slots=asyncio.Semaphore(4),
    )
    await agent.handle(Inbound(hits, schemas.Origin("search.hits", 0, 0)), emit)
    return build_context(hits, pages, deadline_passed=False)


@pytest.mark.parametrize("mode", ["start", "relevant"])
async def test_stream_and_library_carry_the_same_of_each_page(mode: str) -> None:
    """Date, confidence, cache mark and the place of each excerpt, beside an equal corpus."""
    settings = {"research_excerpt_mode": mode, "research_web_content_chars_per_source": "40"}
    config = SiteConfig(settings, environ={})
    web = WebResearcher(site_config=config, search=FakeSearch(*HITS), fetcher=Pages())
    report = await ResearchService(site_config=config, web=web).research(TOPIC)
    context = await through_the_agents(settings)
    assert context.corpus == report.corpus != ""
    assert [
        (s.url, s.published_on, s.date_confidence, s.cached, [(e.start, e.end) for e in s.excerpts])
        for s in context.sources
    ] == [
        (s.url, s.published_on, s.date_confidence, s.cached, [(e.start, e.end) for e in excerpts])
        for s, excerpts in zip(report.sources, report.excerpts, strict=True)
    ]
    first = next(source for source in context.sources if source.rank == 0)
    assert (first.published_on, first.date_confidence, first.cached) == (
        "2024-05-01",
        "medium",
        True,
    )


async def test_an_excerpt_can_be_checked_against_the_page_on_the_log() -> None:
    """The offsets and the hash lead to the same characters of the page's text."""
    settings = {"research_excerpt_mode": "relevant", "research_web_content_chars_per_source": "45"}
    context = await through_the_agents(settings)
    assert {source.rank for source in context.sources} == {0, 1}
    for source in context.sources:
        text = TEXTS[source.rank]
        assert source.content_sha256 == hashlib.sha256(text.encode()).hexdigest()
        assert source.excerpts
        for excerpt in source.excerpts:
            assert excerpt.text_sha256 == source.content_sha256
            assert text[excerpt.start : excerpt.end] in context.corpus
