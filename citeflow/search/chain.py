"""The search: the configured backends in order, the first with hits wins, and the truth if none."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Self

from citeflow.search.backend import BackendAnswer, SearchBackend
from citeflow.search.duckduckgo import DuckDuckGoBackend
from citeflow.search.outcome import SearchOutcome, SearchProvenance, SearchStatus
from citeflow.search.searxng import SearxngBackend
from citeflow.search.text import MAX_QUERY_CHARS, clean_query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from citeflow.settings import SiteConfig

__all__ = ["BACKENDS", "SearchChain"]

logger = logging.getLogger(__name__)

BACKENDS: Mapping[str, Callable[[SiteConfig], SearchBackend]] = {
    "duckduckgo": DuckDuckGoBackend,
    "searxng": SearxngBackend,
}
"""Every backend by the name that the setting `web_research_backends` gives it."""

# When several backends failed, the outcome has the status that says most about what to do next:
# a refusal before a timeout before a broken set-up.
_FAILURES_BY_WEIGHT = (
    SearchStatus.CHALLENGED,
    SearchStatus.RATE_LIMITED,
    SearchStatus.BLOCKED,
    SearchStatus.TIMEOUT,
    SearchStatus.UNREACHABLE,
    SearchStatus.UNAVAILABLE,
)

_FAILURE_WORDS = {
    SearchStatus.CHALLENGED: "challenged the request",
    SearchStatus.RATE_LIMITED: "asked for fewer requests",
    SearchStatus.BLOCKED: "refused the request",
    SearchStatus.TIMEOUT: "did not answer in time",
    SearchStatus.UNREACHABLE: "could not be reached",
    SearchStatus.UNAVAILABLE: "could not be used",
}

_Asked = list[tuple[str, BackendAnswer]]


class SearchChain:
    """Asks the backends of the setting `web_research_backends`, which is read at each search.

        async with SearchChain(site_config) as chain:
            outcome = await chain.search("FastAPI streaming responses")

    May be shared by many tasks of one event loop. `backends` replaces the built-in backends, in
    place of the setting.
    """

    def __init__(
        self, site_config: SiteConfig, *, backends: Sequence[SearchBackend] | None = None
    ) -> None:
        self._site_config = site_config
        self._given = None if backends is None else tuple(backends)
        self._made: dict[str, SearchBackend] = {}
        self._warned: set[str] = set()

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

        `timeout` is in seconds for one attempt at one backend, by default the setting
        `web_research_search_timeout_seconds`. A blank query is answered `EMPTY` without asking
        anybody. `EMPTY` otherwise means that every backend asked said so: when one failed and
        the others found nothing, the status is the failure's and the note says inconclusive.
        Never raises, except `CancelledError`.
        """
        wanted = clean_query(query)
        if not wanted:
            # As it was given, unless it is made of what cannot be stored.
            given = "" if query.strip() else query[:MAX_QUERY_CHARS]
            return SearchOutcome(SearchStatus.EMPTY, provenance=SearchProvenance(query_used=given))
        backends = self._backends()
        available = [backend for backend in backends if backend.available()]
        if not available:
            return _nobody_to_ask(wanted, backends)
        seconds = self._seconds(timeout)
        asked: _Asked = []
        for backend in available:
            answer = await self._ask(backend, wanted, max(1, k), seconds)
            asked.append((backend.name, answer))
            if answer.hits:
                break
        return _conclude(wanted, asked)

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
        return self._site_config.get_float("web_research_search_timeout_seconds")

    async def _ask(
        self, backend: SearchBackend, query: str, k: int, timeout: float
    ) -> BackendAnswer:
        try:
            answer = await backend.search(query, k, timeout)
        except Exception:
            # The stage boundary: one backend's fault must not end the search.
            logger.exception("search backend %s failed", backend.name)
            return BackendAnswer(SearchStatus.UNAVAILABLE, detail="an unforeseen failure")
        if not answer.status.answered:
            logger.warning("search backend %s", _clause(backend.name, answer))
        return answer


def _conclude(query: str, asked: _Asked) -> SearchOutcome:
    name, last = asked[-1]
    failed = [(other, answer) for other, answer in asked if not answer.status.answered]
    waits = [answer.retry_after for _, answer in failed if answer.retry_after is not None]
    provenance = SearchProvenance(
        backend=name if last.hits else None,
        query_used=query,
        backends_tried=tuple(other for other, _ in asked),
        challenged=any(answer.status is SearchStatus.CHALLENGED for _, answer in asked),
    )
    clauses = "; ".join(_clause(other, answer) for other, answer in failed)
    if last.hits:
        note = f"answered by {name}" + (f" ({clauses})" if clauses else "")
        return SearchOutcome(
            SearchStatus.OK, last.hits, note if len(asked) > 1 else None, provenance
        )
    if not failed:
        return SearchOutcome(SearchStatus.EMPTY, provenance=provenance)
    empty = [other for other, answer in asked if answer.status is SearchStatus.EMPTY]
    if empty:
        clauses = f"inconclusive: {', '.join(empty)} found nothing, but {clauses}"
    statuses = {answer.status for _, answer in failed}
    return SearchOutcome(
        next(status for status in _FAILURES_BY_WEIGHT if status in statuses),
        note=f"{clauses}. This is not evidence that nothing matched.",
        provenance=provenance,
        retry_after=min(waits, default=None),
    )


def _clause(name: str, answer: BackendAnswer) -> str:
    detail = f" ({answer.detail})" if answer.detail else ""
    return f"{name} {_FAILURE_WORDS[answer.status]}{detail}"


def _nobody_to_ask(query: str, backends: Sequence[SearchBackend]) -> SearchOutcome:
    missing = "; ".join(f"{backend.name} needs {backend.needs}" for backend in backends)
    return SearchOutcome(
        SearchStatus.UNAVAILABLE,
        note="no search backend can be asked: "
        + (missing or "web_research_backends names none that is known")
        + ". This is not evidence that nothing matched.",
        provenance=SearchProvenance(query_used=query),
    )
