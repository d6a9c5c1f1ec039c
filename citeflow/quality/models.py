"""What judging a set of search results yields: sources that may be cited, and the rest with why."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["DropReason", "DroppedSource", "Judgement", "ScoredSource"]


@dataclass(frozen=True, slots=True)
class ScoredSource:
    """One source that may be cited. Every score lies in 0..1, higher is better.

    `overall_score` is the weighted average of the five component scores (0.0 when all weights
    are zero). `search_position` is the best 0-based position any copy of the source had in the
    engine's own order. Texts are as the engine and the page gave them, not yet safe to render.
    `published_on` is the day the page says it is from (YYYY-MM-DD, blank if unknown) with its
    `date_confidence` (`high`, `medium`, `low` or blank); `cached`: the page was read earlier and
    kept. None of the three has a part in the scores.
    """

    title: str
    url: str
    snippet: str
    domain: str
    domain_credibility: float
    snippet_quality: float
    recency_score: float
    uniqueness_score: float
    overall_score: float
    content: str = ""
    search_rank_score: float = 0.0
    search_position: int = 0
    published_on: str = ""
    date_confidence: str = ""
    cached: bool = False


class DropReason(enum.StrEnum):
    """Why a search result did not become a source."""

    NO_URL = "no_url"
    """The result has no address."""
    UNSAFE_URL = "unsafe_url"
    """The address is not a plain http or https one, so it cannot be cited."""
    UNFETCHABLE = "unfetchable"
    """Its page could not be read."""
    THIN_SNIPPET = "thin_snippet"
    """Its snippet is missing or under the minimum length or word count."""
    DUPLICATE = "duplicate"
    """The same source as one that was kept."""
    OVER_LIMIT = "over_limit"
    """Good enough, but more sources were found than the caller asked for."""


@dataclass(frozen=True, slots=True)
class DroppedSource:
    """One search result that did not become a source. `detail` is a short text for people."""

    url: str
    title: str
    position: int
    reason: DropReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Sources, best first, and the dropped results in input order."""

    sources: tuple[ScoredSource, ...] = ()
    dropped: tuple[DroppedSource, ...] = ()
