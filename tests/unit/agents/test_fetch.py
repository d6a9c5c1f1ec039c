"""The fetch agent: one record per hit, whatever becomes of its page."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import schemas
from agents import Inbound
from agents.fetch import FetchAgent
from agents.slots import Slots
from citeflow.fetch import FetchOutcome, FetchStatus
from citeflow.findings import collect_findings
from citeflow.settings import SiteConfig

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Web:
    """Pages by address; counts how many are read at once."""

    def __init__(self, failing: frozenset[str] = frozenset()) -> None:
        self.failing = failing
        self.at_once = 0
        self.most = 0
        self.limits: list[float | None] = []

    async def fetch(self, url: str, *, timeout: float | None = None) -> FetchOutcome:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        self.limits.append(timeout)
        await asyncio.sleep(0)
        self.at_once -= 1
        if url in self.failing:
            return FetchOutcome(FetchStatus.HTTP_ERROR, url, http_status=404, detail="HTTP 404")
        return FetchOutcome(FetchStatus.OK, url, text=f"text of {url}", fetched_at=NOW.timestamp())


def hits_of(count: int, *, wanted: bool = True, left: float = 60.0) -> schemas.SearchHits:
    return schemas.SearchHits(
        event_id="e", request_id="r", topic="t", category="c", max_results=20, requested_at=NOW,
        searched_at=NOW, deadline_at=NOW + timedelta(seconds=left), status="ok",
        pages_wanted=wanted,
        hits=tuple(
            schemas.Hit(rank=n, title="t", url=f"https://h{n}.example/", snippet="s")
            for n in range(count)
        ),
    )  # fmt: skip


async def pages_for(
    hits: schemas.SearchHits,
    web: Web,
    *,
    slots: int = 64,
    settings: dict[str, object] | None = None,
) -> list[schemas.PageFetched]:
    agent = FetchAgent(
        fetcher=web,
        site_config=SiteConfig(settings, environ={}),
        clock=lambda: NOW,
        slots=Slots(lambda: slots),
    )
    sent: list[schemas.PageFetched] = []

    async def emit(record: schemas.Record) -> None:
        assert isinstance(record, schemas.PageFetched)
        sent.append(record)

    await agent.handle(Inbound(hits, schemas.Origin("search.hits", 0, 0)), emit)
    return sent


async def test_one_record_per_hit_with_the_reason_of_a_failure() -> None:
    """Every hit has its page; the unread one says why, and its host is in a finding."""
    with collect_findings() as findings:
        pages = await pages_for(hits_of(3), Web(frozenset({"https://h1.example/"})))
    assert sorted((page.rank, page.url, page.status) for page in pages) == [
        (0, "https://h0.example/", "ok"),
        (1, "https://h1.example/", "http_error"),
        (2, "https://h2.example/", "ok"),
    ]
    assert [(finding.kind, finding.dedup_key) for finding in findings] == [
        ("web_research_extract_failed", "web_research_extract_failed:h1.example")
    ]


async def test_ids_repeat() -> None:
    """The same hits read again give the same event ids."""
    first = await pages_for(hits_of(2), Web())
    second = await pages_for(hits_of(2), Web())
    assert {page.event_id for page in first} == {page.event_id for page in second}
    assert len({page.event_id for page in first}) == 2


async def test_one_request_cannot_take_all_slots() -> None:
    """At most `web_research_max_concurrent` pages of a request are read at once."""
    web = Web()
    await pages_for(hits_of(12), web, settings={"web_research_max_concurrent": "4"})
    assert web.most == 4
    web = Web()
    await pages_for(hits_of(12), web, slots=2)
    assert web.most == 2


async def test_nothing_is_read_past_the_deadline_nor_when_not_wanted() -> None:
    """A page after the deadline is a timeout without a request; unwanted pages have no record."""
    web = Web()
    pages = await pages_for(hits_of(2, left=0.0), web)
    assert ([page.status for page in pages], web.limits) == (["timeout"] * 2, [])
    assert await pages_for(hits_of(2, wanted=False), web) == []
    await pages_for(hits_of(1, left=4.0), web)
    assert web.limits == [4.0]
