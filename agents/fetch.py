"""search.hits -> pages.fetched: read every hit's page."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from agents.backlog import Backlog
from agents.base import Emit, Inbound
from agents.slots import Slots
from citeflow.fetch import FetchOutcome, FetchStatus
from citeflow.settings import SiteConfig
from citeflow.web import report_unread_pages
from schemas import Hit, PageFetched, SearchHits, event_id

__all__ = ["FetchAgent", "Fetcher"]

# What a page says of itself goes on a record of bounded size; its text has a limit of its own.
MAX_URL, MAX_WORDS = 4096, 500


class Fetcher(Protocol):
    """What the agent needs of a page fetcher."""

    async def fetch(self, url: str, *, timeout: float | None = None) -> FetchOutcome:
        """Read a page; never raises."""


class FetchAgent:
    """Emits one record per hit as soon as its page is read, or the reason why it was not.

    `slots` bounds the pages read at once by all requests of a worker; a single request uses at
    most `web_research_max_concurrent` of them, so that a slow one cannot take them all. `backlog`
    is told how old hits are when their turn comes. While the pages that `unscored` tells of are
    older than `stream_max_pages_age_seconds`, none is read, for `patience` seconds at most.
    """

    stage = "fetch"

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        site_config: SiteConfig,
        clock: Callable[[], datetime],
        slots: Slots,
        backlog: Backlog | None = None,
        unscored: Backlog | None = None,
        patience: float = 30.0,
    ) -> None:
        self._fetcher = fetcher
        self._site_config = site_config
        self._clock = clock
        self._slots = slots
        self._backlog = backlog or Backlog(clock)
        self._unscored = unscored or Backlog(clock)
        self._patience = patience

    def request_id(self, event: Inbound[SearchHits]) -> str:
        """The request the hits are of."""
        return event.record.request_id

    async def handle(self, event: Inbound[SearchHits], emit: Emit) -> None:
        """Read all pages, a few at a time."""
        hits = event.record
        if not hits.pages_wanted:
            return
        own = asyncio.Semaphore(self._site_config.get_int("web_research_max_concurrent"))
        # Not a task group: what fails must surface as itself, and the other pages still be sent.
        limit = functools.partial(self._site_config.get_float, "stream_max_pages_age_seconds")
        with self._backlog.handling(hits.searched_at):
            left = (hits.deadline_at - self._clock()).total_seconds()
            await self._unscored.wait_below(limit, min(self._patience, left))
            results = await asyncio.gather(
                *(self._read(hits, hit, own, emit) for hit in hits.hits), return_exceptions=True
            )
        outcomes = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            outcomes.append(result)
        report_unread_pages(hits.topic, outcomes)

    async def give_up(self, event: Inbound[SearchHits], error: Exception, emit: Emit) -> None:
        """Report every page as failed; pages that were already sent are recognised as such."""
        for hit in event.record.hits:
            outcome = FetchOutcome(FetchStatus.ERROR, hit.url, detail=type(error).__name__)
            await emit(self._record(event.record, hit, outcome))

    async def _read(
        self, hits: SearchHits, hit: Hit, own: asyncio.Semaphore, emit: Emit
    ) -> FetchOutcome:
        async with own, self._slots:
            # A page that is read after the context went out helps nobody.
            left = (hits.deadline_at - self._clock()).total_seconds()
            if left <= 0:
                outcome = FetchOutcome(
                    FetchStatus.TIMEOUT, hit.url, detail="the request's deadline had passed"
                )
            else:
                limit = self._site_config.get_float("web_research_fetch_timeout_seconds")
                outcome = await self._fetcher.fetch(hit.url, timeout=min(limit, left))
        await emit(self._record(hits, hit, outcome))
        return outcome

    def _record(self, hits: SearchHits, hit: Hit, outcome: FetchOutcome) -> PageFetched:
        fetched_at = datetime.fromtimestamp(outcome.fetched_at, UTC) if outcome.fetched_at else None
        return PageFetched(
            event_id=event_id(hits.request_id, self.stage, hit.rank, hit.url),
            request_id=hits.request_id,
            rank=hit.rank,
            url=hit.url,
            status=outcome.status.value,
            fetched_at=fetched_at or self._clock(),
            http_status=outcome.http_status,
            final_url=outcome.final_url[:MAX_URL],
            content_type=outcome.content_type[:MAX_WORDS],
            charset=outcome.charset[:MAX_WORDS],
            title=outcome.title[:MAX_WORDS],
            text=outcome.text,
            truncated=outcome.truncated,
            published_at=outcome.published_at,
            published_on=outcome.published_on,
            date_confidence=outcome.date_confidence,
            cached=outcome.cached,
            content_sha256=outcome.content_sha256,
            elapsed_ms=outcome.elapsed_ms,
            stage=outcome.stage,
            detail=outcome.detail[:MAX_WORDS],
        )
