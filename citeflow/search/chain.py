"""The search: the configured backends in order, the first with hits wins, and the truth if none."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Self

from citeflow.findings import emit_finding
from citeflow.search.ask import Asked, Asker, Time
from citeflow.search.backend import SearchBackend
from citeflow.search.brave import BraveBackend
from citeflow.search.broaden import broader_forms
from citeflow.search.ddg_lite import DdgLiteBackend
from citeflow.search.duckduckgo import DuckDuckGoBackend
from citeflow.search.health import HEALTH, Health
from citeflow.search.outcome import SearchOutcome, SearchProvenance, SearchStatus
from citeflow.search.searxng import SearxngBackend
from citeflow.search.stored import SearchStore
from citeflow.search.text import MAX_QUERY_CHARS, clean_query
from citeflow.search.verdict import clause, conclude, nobody_to_ask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from citeflow.settings import SiteConfig

__all__ = ["BACKENDS", "SearchChain"]

logger = logging.getLogger(__name__)

BACKENDS: Mapping[str, Callable[[SiteConfig], SearchBackend]] = {
    "duckduckgo": DuckDuckGoBackend,
    "ddg_lite": DdgLiteBackend,
    "searxng": SearxngBackend,
    "brave": BraveBackend,
}
"""Every backend by the name that the setting `web_research_backends` gives it."""

# No engine gives more on one page, and an event must stay far below Kafka's message limit.
_MAX_HITS = 100


class SearchChain:
    """Asks the backends of the setting `web_research_backends`, which is read at each search.

        async with SearchChain(site_config) as chain:
            outcome = await chain.search("FastAPI streaming responses")

    May be shared by many tasks of one event loop. `backends` replaces the built-in backends, in
    place of the setting; `health` and `clockwork` what is known of the engines in this process,
    time and chance.
    """

    def __init__(
        self,
        site_config: SiteConfig,
        *,
        backends: Sequence[SearchBackend] | None = None,
        health: Health | None = None,
        clockwork: Time | None = None,
    ) -> None:
        self._site_config = site_config
        self._given = None if backends is None else tuple(backends)
        self._made: dict[str, SearchBackend] = {}
        self._warned: set[str] = set()
        self._health = health or HEALTH
        self._asker = Asker(site_config, clockwork or Time())
        self._store = SearchStore(site_config)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release the connections of the built-in backends; given ones are their owner's."""
        for backend in self._made.values():
            await backend.aclose()

    async def search(self, query: str, k: int = 5, timeout: float | None = None) -> SearchOutcome:
        """At most `k` (at least one) hits of the first backend that has any.

        `timeout` is in seconds for the whole search, by default the setting
        `web_research_search_deadline_seconds`; each backend gets its share of what is left, and
        for one attempt no more than `web_research_search_timeout_seconds`.

        A blank query is answered `EMPTY` without asking anybody. `EMPTY` otherwise means that
        every backend asked said so: when one failed and the others found nothing, the status is
        the failure's and the note says inconclusive. When all of them challenged the query,
        broader forms of it are tried. A search with hits is stored and used again for
        `research_cache_ttl_seconds`. Emits the findings `web_search_blocked` for each backend that
        refused and `web_search_failed`. Never raises, except `CancelledError`.
        """
        wanted = clean_query(query)
        if not wanted:
            # As it was given, unless it is made of what cannot be stored.
            given = "" if query.strip() else query[:MAX_QUERY_CHARS]
            return SearchOutcome(SearchStatus.EMPTY, provenance=SearchProvenance(query_used=given))
        until = time.monotonic() + self._seconds(timeout)
        backends = self._backends()
        available = self._available(backends)
        count = min(max(1, k), _MAX_HITS)
        if available:
            outcome = await self._store.through(
                wanted, count, available, until, lambda: self._ask(wanted, count, available, until)
            )
        else:
            outcome = nobody_to_ask(wanted, backends)
        if not outcome.status.answered:
            _report_failed(wanted, outcome)
        return outcome

    def available(self) -> list[SearchBackend]:
        """The backends that would be asked now, in order."""
        return self._available(self._backends())

    @staticmethod
    def _available(backends: Sequence[SearchBackend]) -> list[SearchBackend]:
        return [backend for backend in backends if backend.available()]

    def _backends(self) -> tuple[SearchBackend, ...]:
        if self._given is not None:
            return self._given
        names = dict.fromkeys(
            name.lower() for name in self._site_config.get_list("web_research_backends")
        )
        chosen = []
        for name in names:
            if name not in BACKENDS:
                if name not in self._warned:
                    self._warned.add(name)
                    logger.warning("web_research_backends names an unknown backend: %r", name)
                continue
            if name not in self._made:
                self._made[name] = BACKENDS[name](self._site_config)
            chosen.append(self._made[name])
        return tuple(chosen)

    def _seconds(self, timeout: float | None) -> float:
        if timeout is not None and math.isfinite(timeout) and timeout > 0:
            return float(timeout)
        return self._site_config.get_float("web_research_search_deadline_seconds")

    async def _ask(
        self, query: str, k: int, available: Sequence[SearchBackend], until: float
    ) -> SearchOutcome:
        rounds: list[list[Asked]] = []
        for form in [query, *broader_forms(query)]:
            rounds.append(await self._round(form, k, available, until))
            attempts = [asked.attempt for asked in rounds[-1]]
            # Broadening loses search terms, so it is for a query that nobody would look at: not
            # for an honest zero, not for an engine that is down, nor when nobody was asked.
            refused = all(attempt.status is SearchStatus.CHALLENGED for attempt in attempts)
            if not (refused and any(attempt.requests for attempt in attempts)):
                break
            if time.monotonic() >= until:
                break
        outcome = conclude(query, rounds)
        _report_blocked(query, outcome)
        return outcome

    async def _round(
        self, form: str, k: int, available: Sequence[SearchBackend], until: float
    ) -> list[Asked]:
        answered: list[Asked] = []
        for left, backend in zip(range(len(available), 0, -1), available, strict=True):
            now = time.monotonic()
            asked = await self._asker.ask(
                backend,
                self._health.of(backend.endpoint),
                form,
                k,
                until=now + max(0.0, until - now) / left,
                last=left == 1,
            )
            answered.append(asked)
            if asked.hits:
                break
            if not asked.attempt.status.answered:
                logger.warning("search backend %s", clause(asked.attempt))
        return answered


def _report_blocked(query: str, outcome: SearchOutcome) -> None:
    attempts = outcome.provenance.attempts
    refused = {a.backend: a for a in attempts if a.status.refused and a.requests}
    for name, attempt in refused.items():
        emit_finding(
            # A cooldown is kept per kind and source, and one backend must not hide another.
            source=f"web_search.{name}",
            kind="web_search_blocked",
            severity="warn",
            title=f"The search backend {name} refuses requests",
            body=f"{clause(attempt)}, asked for {query[:200]!r}",
            dedup_key=f"web_search_blocked:{name}",
            extra={
                "backend": name,
                "status": attempt.status.value,
                "retry_after": attempt.retry_after,
                "query": attempt.query,
            },
        )


def _report_failed(query: str, outcome: SearchOutcome) -> None:
    emit_finding(
        source="web_search",
        kind="web_search_failed",
        severity="info",
        title="A web search had no answer",
        body=f"For {query[:200]!r}: {outcome.note}",
        extra={
            "query": query,
            "status": outcome.status.value,
            "backends_tried": list(outcome.provenance.backends_tried),
        },
    )
