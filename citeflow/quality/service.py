"""Filter, de-duplicate and rank search results: `ResearchQualityService`.

A source's score is the weighted average of five components in 0..1: domain credibility, snippet
quality, recency, uniqueness and its place in the search engine's own order. The weights are
relative; with the defaults a tier-1 host right behind another result can pass it and a tier-2
host alone cannot.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from citeflow.quality.credibility import domain_credibility
from citeflow.quality.models import DroppedSource, DropReason, Judgement, ScoredSource
from citeflow.quality.recency import recency_score
from citeflow.quality.similarity import word_similarity
from citeflow.quality.snippet import is_thin, snippet_quality
from citeflow.quality.urls import canonical_url, host_of
from citeflow.quality.words import Terms, comparison_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from citeflow.settings import SiteConfig

__all__ = ["QUALITY_SETTINGS", "ResearchQualityService", "result_position"]

logger = logging.getLogger(__name__)

QUALITY_SETTINGS = frozenset(
    {
        "research_min_snippet_length",
        "research_min_snippet_words",
        "research_dedup_similarity_threshold",
        "research_tier1_domains",
        "research_tier2_domains",
        "research_credibility_weight",
        "research_snippet_quality_weight",
        "research_recency_weight",
        "research_uniqueness_weight",
        "research_search_rank_weight",
        "research_recency_fresh_days",
        "research_recency_recent_days",
    }
)

# Similarities are ratios of small integers; a pair that equals the threshold on paper must not
# miss it by a rounding error.
_EPSILON = 1e-9
# Scores that are equal on paper must tie whatever order their terms were added in.
_SCORE_DIGITS = 12


@dataclass(frozen=True, slots=True)
class _Weights:
    credibility: float
    snippet: float
    recency: float
    uniqueness: float
    rank: float

    @property
    def total(self) -> float:
        return self.credibility + self.snippet + self.recency + self.uniqueness + self.rank

    def own_merit(self, source: ScoredSource) -> float:
        """What decides between copies of one source: neither rank nor uniqueness."""
        return round(
            self.credibility * source.domain_credibility
            + self.snippet * source.snippet_quality
            + self.recency * source.recency_score,
            _SCORE_DIGITS,
        )

    def overall(self, source: ScoredSource) -> float:
        if self.total <= 0:
            return 0.0
        weighted = (
            self.credibility * source.domain_credibility
            + self.snippet * source.snippet_quality
            + self.recency * source.recency_score
            + self.uniqueness * source.uniqueness_score
            + self.rank * source.search_rank_score
        )
        return round(weighted / self.total, _SCORE_DIGITS)


@dataclass(slots=True)
class _Candidate:
    """A result that passed the filter. `position` becomes the best one of all its copies."""

    index: int
    position: int
    source: ScoredSource
    words: list[str]
    key: str


def _text(result: Mapping[str, Any], name: str) -> str:
    value = result.get(name)
    return value if isinstance(value, str) else ""


def result_position(result: Mapping[str, Any], index: int) -> int:
    """The 0-based position in the engine's order: `search_position`, else the list index."""
    position = result.get("search_position")
    if isinstance(position, int) and not isinstance(position, bool) and position >= 0:
        return position
    return index


class ResearchQualityService:
    """Judges search results. Every setting is read at each call, nothing is kept between calls."""

    def __init__(self, *, site_config: SiteConfig) -> None:
        self._config = site_config

    def filter_and_score(
        self,
        results: Sequence[Mapping[str, Any]],
        query: str | None = None,
        *,
        searched: int | None = None,
        now: datetime | None = None,
    ) -> list[ScoredSource]:
        """The results that may be cited, highest `overall_score` first.

        `results` are dicts with `title`, `url`, `snippet`, `content` and optionally
        `search_position`, the 0-based place in the engine's order (default: the list index), and
        `published_on`, `date_confidence` and `cached`, as in `ScoredSource`.
        `searched` is how many results that order had, for results of which some were already
        removed (default: as many as there are). `now` is the aware time that recency is judged
        against (default: the current time). Equal scores keep the search order; with all weights
        zero every score is 0.0 and the input order is kept.
        """
        return list(self.judge(results, query, searched=searched, now=now).sources)

    def judge(
        self,
        results: Sequence[Mapping[str, Any]],
        query: str | None = None,
        *,
        searched: int | None = None,
        now: datetime | None = None,
    ) -> Judgement:
        """As `filter_and_score`, with the dropped results and why each was dropped."""
        if not results:
            return Judgement()
        moment = now or datetime.now(UTC)
        weights = self._weights()
        candidates, dropped = self._filter(results, Terms(query), moment)
        thin = len(dropped)
        kept, duplicates = self._deduplicate(candidates, weights)
        positions = [result_position(result, index) for index, result in enumerate(results)]
        order_length = max(searched or 0, len(results), max(positions) + 1)
        sources = self._rank(kept, weights, order_length)
        logger.info(
            "ResearchQualityService: Processed %d results, kept %d (%d thin snippet, %d duplicate)",
            len(results),
            len(sources),
            thin,
            len(duplicates),
        )
        everything = sorted([*dropped, *duplicates], key=lambda pair: pair[0])
        return Judgement(tuple(sources), tuple(drop for _, drop in everything))

    def _weights(self) -> _Weights:
        read = self._config.get_float
        return _Weights(
            credibility=read("research_credibility_weight"),
            snippet=read("research_snippet_quality_weight"),
            recency=read("research_recency_weight"),
            uniqueness=read("research_uniqueness_weight"),
            rank=read("research_search_rank_weight"),
        )

    def _filter(
        self, results: Sequence[Mapping[str, Any]], terms: Terms, now: datetime
    ) -> tuple[list[_Candidate], list[tuple[int, DroppedSource]]]:
        min_length = self._config.get_int("research_min_snippet_length")
        min_words = self._config.get_int("research_min_snippet_words")
        fresh = self._config.get_int("research_recency_fresh_days")
        recent = self._config.get_int("research_recency_recent_days")
        tier1 = self._config.get_list("research_tier1_domains")
        tier2 = self._config.get_list("research_tier2_domains")
        candidates: list[_Candidate] = []
        dropped: list[tuple[int, DroppedSource]] = []
        for index, result in enumerate(results):
            url, snippet = _text(result, "url").strip(), _text(result, "snippet")
            title, position = _text(result, "title"), result_position(result, index)
            if not url:
                drop = DroppedSource(url, title, position, DropReason.NO_URL)
                dropped.append((index, drop))
                continue
            if not snippet.strip() or is_thin(snippet, min_length=min_length, min_words=min_words):
                detail = f"under {min_length} characters or {min_words} words"
                drop = DroppedSource(url, title, position, DropReason.THIN_SNIPPET, detail)
                dropped.append((index, drop))
                continue
            source = ScoredSource(
                title=title,
                url=url,
                snippet=snippet,
                domain=host_of(url),
                domain_credibility=domain_credibility(url, tier1, tier2),
                snippet_quality=snippet_quality(snippet, terms),
                recency_score=recency_score(snippet, now, fresh_days=fresh, recent_days=recent),
                uniqueness_score=1.0,
                overall_score=0.0,
                content=_text(result, "content"),
                published_on=_text(result, "published_on"),
                date_confidence=_text(result, "date_confidence"),
                cached=result.get("cached") is True,
            )
            words = comparison_words(snippet)
            candidates.append(_Candidate(index, position, source, words, canonical_url(url)))
        return candidates, dropped

    def _deduplicate(
        self, candidates: Sequence[_Candidate], weights: _Weights
    ) -> tuple[list[_Candidate], list[tuple[int, DroppedSource]]]:
        """Keep a candidate unless it is one source with a better one that was already kept.

        Better is the higher own merit, then the earlier input. The keeper takes over the best
        position of its copies.
        """
        threshold = self._config.get_float("research_dedup_similarity_threshold") - _EPSILON
        kept: list[_Candidate] = []
        dropped: list[tuple[int, DroppedSource]] = []
        best_first = sorted(
            candidates, key=lambda each: (-weights.own_merit(each.source), each.index)
        )
        for candidate in best_first:
            keeper, detail = _find_copy(candidate, kept, threshold)
            if keeper is None:
                kept.append(candidate)
                continue
            source, position = candidate.source, candidate.position
            keeper.position = min(keeper.position, position)
            drop = DroppedSource(source.url, source.title, position, DropReason.DUPLICATE, detail)
            dropped.append((candidate.index, drop))
        kept.sort(key=lambda each: each.index)
        return kept, dropped

    def _rank(
        self, kept: Sequence[_Candidate], weights: _Weights, order_length: int
    ) -> list[ScoredSource]:
        closest = [0.0] * len(kept)
        for i, left in enumerate(kept):
            for j in range(i + 1, len(kept)):
                similarity = word_similarity(left.words, kept[j].words)
                closest[i] = max(closest[i], similarity)
                closest[j] = max(closest[j], similarity)
        ranked = []
        for candidate, similarity in zip(kept, closest, strict=True):
            source = replace(
                candidate.source,
                uniqueness_score=1.0 - similarity,
                search_rank_score=1.0 - candidate.position / max(1, order_length - 1),
                search_position=candidate.position,
            )
            ranked.append(replace(source, overall_score=weights.overall(source)))
        if weights.total > 0:
            ranked.sort(key=lambda source: (-source.overall_score, source.search_position))
        return ranked


def _find_copy(
    candidate: _Candidate, kept: Sequence[_Candidate], threshold: float
) -> tuple[_Candidate | None, str]:
    """The kept source that `candidate` is a copy of, and how that shows; the closest one wins."""
    for other in kept:
        if other.key == candidate.key:
            return other, f"same page as {other.source.url}"
    best, best_similarity = None, -1.0
    for other in kept:
        similarity = word_similarity(candidate.words, other.words, at_least=max(0.0, threshold))
        if similarity >= threshold and similarity > best_similarity:
            best, best_similarity = other, similarity
    if best is None:
        return None, ""
    return best, f"{best_similarity:.0%} the same words as {best.source.url}"
