"""What a search returned, and how it came about."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

__all__ = ["SearchAttempt", "SearchHit", "SearchOutcome", "SearchProvenance", "SearchStatus"]


class SearchStatus(enum.StrEnum):
    """How a search ended. `EMPTY` is an answer; everything below it is a failure."""

    OK = "ok"
    """At least one hit."""
    EMPTY = "empty"
    """Every backend that answered said that nothing matches."""
    CHALLENGED = "challenged"
    """The engine asked for proof of a human (HTTP 202, an anomaly page, a captcha)."""
    RATE_LIMITED = "rate_limited"
    """The engine asked for fewer requests (HTTP 429 or 418)."""
    BLOCKED = "blocked"
    """The engine refused (HTTP 403 and other 4xx)."""
    TIMEOUT = "timeout"
    """No answer within `web_research_search_timeout_seconds`."""
    UNREACHABLE = "unreachable"
    """No connection, or the engine failed (HTTP 5xx)."""
    UNAVAILABLE = "unavailable"
    """No backend could be asked: not installed, not configured, or its answer was unreadable."""

    @property
    def answered(self) -> bool:
        """True when the engine gave an answer, be it hits or an honest nothing."""
        return self in (SearchStatus.OK, SearchStatus.EMPTY)

    @property
    def refused(self) -> bool:
        """True when the engine was reached and would not answer."""
        return self in (SearchStatus.CHALLENGED, SearchStatus.RATE_LIMITED, SearchStatus.BLOCKED)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result as the engine gave it: plain text, not yet made safe for rendering."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True)
class SearchAttempt:
    """What came of asking one backend one form of the query.

    `detail` is a clause for people, without addresses or secrets. `retry_after` is in seconds,
    None when the backend did not say. `requests` is how many were sent, 0 when it was not asked:
    its circuit is open (`circuit_open`) or the rate limit left no turn. `unresponsive_engines` are
    those that a SearXNG instance itself could not ask, with its reasons.
    """

    backend: str
    query: str
    status: SearchStatus
    detail: str = ""
    retry_after: float | None = None
    requests: int = 1
    circuit_open: bool = False
    unresponsive_engines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProvenance:
    """Which backend answered which query, and who else was asked.

    `backends_tried` holds every call in order, with repeats; `attempts` how each of them ended,
    those that were left out included. Two provenances are equal when their other fields are.
    """

    backend: str | None = None
    cached: bool = False
    query_used: str = ""
    backends_tried: tuple[str, ...] = ()
    challenged: bool = False
    attempts: tuple[SearchAttempt, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """A search's hits in the engine's own order, or the reason why there are none.

    `note` is a sentence for people, None when there is nothing to say. `retry_after` is the
    number of seconds the engine asked to wait, None when it did not say.
    """

    status: SearchStatus
    hits: tuple[SearchHit, ...] = ()
    note: str | None = None
    provenance: SearchProvenance = field(default_factory=SearchProvenance)
    retry_after: float | None = None

    @property
    def inconclusive(self) -> bool:
        """True when some backend found nothing and another one failed: neither yes nor no."""
        return not self.status.answered and any(
            attempt.status is SearchStatus.EMPTY for attempt in self.provenance.attempts
        )
