"""topics.requested -> search.hits: search the web, and look up what needs no web."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Protocol

from agents.backlog import Backlog
from agents.base import Emit, Inbound
from agents.request import request_id_of, resolve_request
from agents.slots import Slots
from citeflow.context import find_internal_links, get_known_references, match_references
from citeflow.context.links import FetchPool
from citeflow.research import ASSEMBLE_SETTINGS
from citeflow.search import SearchOutcome, SearchProvenance, SearchStatus
from citeflow.settings import SiteConfig
from schemas import (
    Hit,
    Link,
    PostLink,
    Provenance,
    SearchHits,
    TopicRequested,
    event_id,
)

__all__ = ["SearchAgent", "Searcher"]

logger = logging.getLogger(__name__)

# A second search that has less than this left would only end in a timeout.
_WORTH_SEARCHING = 1.0

# Engines count in whole seconds, and our own note of their Retry-After must have run out.
_AFTER_RETRY_AFTER = 0.2

_SHORTEST_SEARCH = 0.1


class Searcher(Protocol):
    """What the agent needs of a search chain."""

    async def search(self, query: str, k: int = 5, timeout: float | None = None) -> SearchOutcome:
        """Search the web; never raises."""


class SearchAgent:
    """Answers every request with exactly one kind of record, also when the search fails.

    References, internal links and the settings in force are put on the record, so that all that
    follows depends on events alone.

    A request that every backend refused is parked: searched once more after the shortest wait that
    was asked for, if that is within its deadline and `budget`, the seconds that a handler may take
    for searching. Meanwhile it is not acknowledged, so a worker that is killed loses nothing, and
    it takes none of the `slots`, the searches that may run at once.

    While the hits that `backlog` tells of are older than `stream_max_hits_age_seconds`, no search
    is begun, for `patience` seconds at most.
    """

    stage = "search"

    def __init__(
        self,
        *,
        searcher: Searcher,
        site_config: SiteConfig,
        clock: Callable[[], datetime],
        slots: Slots | None = None,
        posts: FetchPool | None = None,
        backlog: Backlog | None = None,
        patience: float = 60.0,
        budget: float = 80.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._searcher = searcher
        self._site_config = site_config
        self._clock = clock
        self._slots = slots or Slots(lambda: 16)
        self._posts = posts
        self._backlog = backlog or Backlog(clock)
        self._patience = patience
        self._budget = budget
        self._sleep = sleep

    def request_id(self, event: Inbound[TopicRequested]) -> str:
        """The request's own id, or the one derived for it."""
        return request_id_of(event)

    async def handle(self, event: Inbound[TopicRequested], emit: Emit) -> None:
        """Search, and emit the hits or the reason why there are none."""
        request = resolve_request(event)
        await self._until_reading_keeps_up(request.deadline)
        if await self._turn(request.deadline):
            outcome = await self._search_and_park(request)
        else:
            outcome = _unsearched(request, SearchStatus.TIMEOUT, "the deadline passed before it")
        await emit(self._record(request, outcome, await self._post_links(request.topic)))

    async def _search_and_park(self, request: TopicRequested) -> SearchOutcome:
        """Search in the turn just taken; when refused, give it back, wait and take another."""
        ends = self._clock() + timedelta(seconds=self._budget)
        if request.deadline is not None:
            ends = min(ends, request.deadline)
        outcome = await self._search(request, ends)
        wait = self._worth_parking(outcome, ends)
        if wait is None:
            return outcome
        logger.info("request %s is parked for %.1f s", request.request_id, wait)
        await self._sleep(wait)
        return await self._search(request, ends) if await self._turn(ends) else outcome

    async def _until_reading_keeps_up(self, until: datetime | None) -> None:
        limit = functools.partial(self._site_config.get_float, "stream_max_hits_age_seconds")
        left = self._patience
        if until is not None:
            left = min(left, (until - self._clock()).total_seconds())
        await self._backlog.wait_below(limit, left)

    async def _turn(self, until: datetime | None) -> bool:
        """Take one of the slots, False when none is free by then."""
        if until is None:
            return await self._slots.acquire()
        left = (until - self._clock()).total_seconds()
        if left <= 0:
            return False
        try:
            async with asyncio.timeout(left):
                return await self._slots.acquire()
        except TimeoutError:
            return False

    async def _search(self, request: TopicRequested, ends: datetime) -> SearchOutcome:
        try:
            return await self._search_until(request, ends)
        finally:
            self._slots.release()

    async def _search_until(self, request: TopicRequested, ends: datetime) -> SearchOutcome:
        left = (ends - self._clock()).total_seconds()
        limit = self._site_config.get_float("web_research_search_deadline_seconds")
        return await self._searcher.search(
            request.topic, k=request.max_results, timeout=max(min(limit, left), _SHORTEST_SEARCH)
        )

    def _worth_parking(self, outcome: SearchOutcome, ends: datetime) -> float | None:
        """Seconds to wait before the one other search, None when there is to be none."""
        if not outcome.status.refused or outcome.inconclusive:
            return None
        if not self._site_config.get_bool("stream_park_blocked_requests"):
            return None
        wait = outcome.retry_after
        if wait is None:
            wait = self._site_config.get_float("stream_park_seconds")
        wait += _AFTER_RETRY_AFTER
        left = (ends - self._clock()).total_seconds()
        return wait if wait + _WORTH_SEARCHING <= left else None

    async def give_up(self, event: Inbound[TopicRequested], error: Exception, emit: Emit) -> None:
        """Emit hits that say the search could not be made."""
        request = resolve_request(event)
        note = f"the search failed: {type(error).__name__}"
        await emit(self._record(request, _unsearched(request, SearchStatus.UNAVAILABLE, note), ()))

    async def _post_links(self, topic: str) -> tuple[PostLink, ...]:
        if self._posts is None:
            return ()
        table = self._site_config.get_str("internal_links_table")
        links = await find_internal_links(self._posts, topic, table=table)
        return tuple(PostLink(title=link.title, slug=link.slug) for link in links)

    def _record(
        self, request: TopicRequested, outcome: SearchOutcome, posts: tuple[PostLink, ...]
    ) -> SearchHits:
        assert request.request_id is not None
        assert request.requested_at is not None
        now = self._clock()
        config = self._site_config.with_values(request.options)
        due = now + timedelta(seconds=config.get_float("research_join_timeout_seconds"))
        known = get_known_references(site_config=config)
        return SearchHits(
            event_id=event_id(request.request_id, self.stage),
            request_id=request.request_id,
            topic=request.topic,
            category=request.category,
            max_results=request.max_results,
            requested_at=request.requested_at,
            searched_at=now,
            deadline_at=min(due, request.deadline) if request.deadline else due,
            status=outcome.status.value,
            pages_wanted=config.get_bool("research_extract_web_content"),
            note=outcome.note,
            retry_after=outcome.retry_after,
            provenance=_provenance(outcome.provenance),
            hits=tuple(
                Hit(rank=rank, title=hit.title, url=hit.url, snippet=hit.snippet)
                for rank, hit in enumerate(outcome.hits[: request.max_results])
            ),
            references=tuple(
                Link(title=reference.title, url=reference.url)
                for reference in match_references(request.topic, known)
            ),
            internal_links=posts,
            settings=config.overrides(ASSEMBLE_SETTINGS),
        )


def _unsearched(request: TopicRequested, status: SearchStatus, note: str) -> SearchOutcome:
    return SearchOutcome(status, note=note, provenance=SearchProvenance(query_used=request.topic))


def _provenance(provenance: SearchProvenance) -> Provenance:
    return Provenance(
        backend=provenance.backend,
        cached=provenance.cached,
        query_used=provenance.query_used,
        backends_tried=provenance.backends_tried,
        challenged=provenance.challenged,
    )
