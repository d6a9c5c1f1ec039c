"""From search results to a corpus, without I/O and without a clock: `assemble`.

The library call and the stream both end here, so that equal inputs give equal bytes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from citeflow.context.excerpts import Excerpt, choose_excerpts
from citeflow.context.render import render_corpus
from citeflow.context.untrusted import safe_url
from citeflow.findings import emit_finding
from citeflow.quality import (
    QUALITY_SETTINGS,
    DroppedSource,
    DropReason,
    ResearchQualityService,
    ScoredSource,
    result_position,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from citeflow.context.links import InternalLink
    from citeflow.context.references import Reference
    from citeflow.settings import SiteConfig

__all__ = ["ASSEMBLE_SETTINGS", "ResearchReport", "assemble"]

logger = logging.getLogger(__name__)

ASSEMBLE_SETTINGS: frozenset[str] = QUALITY_SETTINGS | {
    "research_require_fetched_source_for_citation",
    "research_excerpt_mode",
    "research_web_content_chars_per_source",
}
"""The settings that `assemble` reads: with these and the same arguments it repeats itself."""

# A finding repeats per topic; the start of a long one tells it apart well enough.
_TOPIC_KEY_CHARS = 50


@dataclass(frozen=True, slots=True)
class ResearchReport:
    """A corpus and how it came about.

    `sources` are the web sources in the corpus, best first; `dropped` are all other results, in
    search order, each with its reason. `counts` has `searched` (hits of the search), `results`
    (of them with an address), `readable`, one entry per drop reason, `kept`, `references` and
    `internal_links`. `timings` are seconds by stage, empty when nobody measured.
    `excerpts` has for each of `sources` what is shown of its page, with where it stands in it.
    """

    corpus: str
    sources: tuple[ScoredSource, ...] = ()
    dropped: tuple[DroppedSource, ...] = ()
    references: tuple[Reference, ...] = ()
    internal_links: tuple[InternalLink, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    excerpts: tuple[tuple[Excerpt, ...], ...] = ()


def assemble(
    *,
    topic: str,
    results: Sequence[Mapping[str, Any]],
    searched: int | None,
    references: Sequence[Reference],
    internal_links: Sequence[InternalLink],
    site_config: SiteConfig,
    now: datetime,
    pages_read: bool,
    max_sources: int | None = None,
    research_quality: ResearchQualityService | None = None,
) -> ResearchReport:
    """Gate, judge and render `results`, and emit the findings that follow.

    `results` are dicts as `WebResearcher.search` returns them; `fetch_detail` in one, if present,
    says why its page has no text. `searched` is the number of hits
    the search gave (None: taken from the results' positions). `now` is the aware time that
    recency is judged against. `pages_read` is False when no page was read on purpose; then no
    result is dropped for having no text. `max_sources` caps the web sources (None: no cap).
    """
    numbered = [
        {**result, "search_position": result_position(result, index)}
        for index, result in enumerate(results)
    ]
    total = max([searched or 0, len(numbered), *(each["search_position"] + 1 for each in numbered)])
    citable, unsafe = _split_unsafe(numbered)
    gate = pages_read and site_config.get_bool("research_require_fetched_source_for_citation")
    readable, unfetchable = _split_unfetchable(citable) if gate else (citable, [])
    quality = research_quality or ResearchQualityService(site_config=site_config)
    judged = quality.judge(readable, query=topic, searched=total, now=now)
    limit = len(judged.sources) if max_sources is None else max(0, max_sources)
    sources, surplus = judged.sources[:limit], judged.sources[limit:]
    over = [
        _drop(each.url, each.title, each.search_position, DropReason.OVER_LIMIT) for each in surplus
    ]
    dropped = sorted([*unsafe, *unfetchable, *judged.dropped, *over], key=lambda d: d.position)
    if readable and not judged.sources:
        _report_all_filtered(topic, judged.dropped)
    elif unfetchable and not readable:
        _report_all_unfetchable(topic, unfetchable)
    chars = site_config.get_int("research_web_content_chars_per_source")
    mode = site_config.get_str("research_excerpt_mode")
    excerpts = tuple(
        choose_excerpts(each.content, chars, mode=mode, topic=topic) for each in sources
    )
    corpus = render_corpus(
        references=references,
        internal_links=internal_links,
        sources=sources,
        excerpts=excerpts,
    )
    counts = {"searched": total, "results": len(numbered), "readable": len(readable)}
    counts |= {reason.value: sum(d.reason is reason for d in dropped) for reason in DropReason}
    counts |= {
        "kept": len(sources),
        "references": len(references),
        "internal_links": len(internal_links),
    }
    return ResearchReport(
        corpus,
        sources,
        tuple(dropped),
        tuple(references),
        tuple(internal_links),
        counts,
        excerpts=excerpts,
    )


def _drop(
    url: object, title: object, position: int, reason: DropReason, detail: str = ""
) -> DroppedSource:
    return DroppedSource(str(url or ""), str(title or ""), position, reason, detail)


_Results = list[dict[str, Any]]


def _split_unsafe(results: _Results) -> tuple[_Results, list[DroppedSource]]:
    citable, dropped = [], []
    for result in results:
        url, title, position = result.get("url"), result.get("title"), result["search_position"]
        if not isinstance(url, str) or not url.strip():
            dropped.append(_drop("", title, position, DropReason.NO_URL))
        elif safe_url(url) is None:
            detail = "not an http or https address that can be cited"
            dropped.append(_drop(url, title, position, DropReason.UNSAFE_URL, detail))
        else:
            citable.append(result)
    return citable, dropped


def _split_unfetchable(results: _Results) -> tuple[_Results, list[DroppedSource]]:
    readable, dropped = [], []
    for result in results:
        if str(result.get("content") or "").strip():
            readable.append(result)
        else:
            detail = str(result.get("fetch_detail") or "the page could not be read")
            position = result["search_position"]
            dropped.append(
                _drop(result["url"], result.get("title"), position, DropReason.UNFETCHABLE, detail)
            )
    if dropped:
        logger.warning(
            "%d of %d web sources left out, their pages could not be read: %s",
            len(dropped),
            len(results),
            ", ".join(each.url for each in dropped),
        )
    return readable, dropped


def _report_all_filtered(topic: str, dropped: Sequence[DroppedSource]) -> None:
    emit_finding(
        source="research_service",
        kind="research_web_sources_all_filtered",
        severity="warn",
        title=f"Every readable web source was rejected for {topic[:_TOPIC_KEY_CHARS]!r}",
        body=(
            f"All {len(dropped)} readable results have a snippet too thin to be a source. If this "
            "recurs across topics, research_min_snippet_length or research_min_snippet_words is "
            "too strict."
        ),
        dedup_key=f"research_web_sources_all_filtered:{topic[:_TOPIC_KEY_CHARS]}",
        extra={"topic": topic, "urls": [each.url for each in dropped]},
    )


def _report_all_unfetchable(topic: str, dropped: Sequence[DroppedSource]) -> None:
    emit_finding(
        source="research_service",
        kind="research_web_sources_all_unfetchable",
        severity="info",
        title=f"No web source could be read for {topic[:_TOPIC_KEY_CHARS]!r}",
        body=f"None of the {len(dropped)} pages found could be read; there is no web section.",
        dedup_key=f"research_web_sources_all_unfetchable:{topic[:_TOPIC_KEY_CHARS]}",
        extra={"topic": topic, "urls": [each.url for each in dropped]},
    )
