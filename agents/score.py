"""search.hits + pages.fetched -> context.ready: judge the sources and render the corpus.

`build_context` is a pure function of events: the same hits and pages give the same bytes, on a
redelivery as in a replay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import orjson

from citeflow.context import InternalLink, Reference
from citeflow.context.excerpts import Excerpt
from citeflow.findings import emit_finding
from citeflow.quality import ScoredSource
from citeflow.research import ResearchReport, assemble
from citeflow.search import SearchStatus
from citeflow.settings import SiteConfig
from schemas import (
    ContextOutcome,
    ContextReady,
    Counts,
    DropRecord,
    ExcerptRecord,
    Link,
    PageFetched,
    PostLink,
    SearchHits,
    SourceRecord,
    Timings,
    context_event_id,
)

__all__ = ["build_context", "failed_context"]


def build_context(
    hits: SearchHits, pages: Mapping[int, PageFetched], *, deadline_passed: bool
) -> ContextReady:
    """The answer to a request, from its hits and the pages that arrived, by rank.

    Emits findings for what operators should know of it.
    """
    report = assemble(
        topic=hits.topic,
        results=[
            {
                "title": hit.title,
                "url": hit.url,
                "snippet": hit.snippet,
                "search_position": hit.rank,
                **_read(pages.get(hit.rank)),
            }
            for hit in hits.hits
        ],
        searched=len(hits.hits),
        references=[Reference(title=link.title, url=link.url) for link in hits.references],
        internal_links=[
            InternalLink(title=link.title, slug=link.slug) for link in hits.internal_links
        ],
        site_config=SiteConfig(hits.settings, environ={}),
        now=hits.requested_at,
        pages_read=hits.pages_wanted,
    )
    outcome, reasons = _judge(hits, report, deadline_passed=deadline_passed)
    if deadline_passed:
        missing = len(hits.hits) - len(pages)
        emit_finding(
            source="score_agent",
            kind="context_deadline_passed",
            title="A context was emitted before all its pages had arrived",
            body=f"{missing} of {len(hits.hits)} pages had not arrived by the deadline",
            severity="warn",
        )
    return _record(hits, pages, report, outcome, reasons)


def failed_context(hits: SearchHits, error: Exception) -> ContextReady:
    """The answer when judging or rendering itself failed: no corpus, and the reason."""
    empty = ResearchReport(corpus="", sources=(), dropped=(), references=(), internal_links=())
    reason = f"internal_error:{type(error).__name__}"
    return _record(hits, {}, empty, ContextOutcome.FAILED, (reason,))


def _read(page: PageFetched | None) -> dict[str, str | bool]:
    """What a page adds to its hit."""
    if page is None or page.status != "ok":
        return {"content": "", "fetch_detail": _why_unread(page)}
    return {
        "content": page.text,
        "published_on": page.published_on,
        "date_confidence": page.date_confidence,
        "cached": page.cached,
    }


def _judge(
    hits: SearchHits, report: ResearchReport, *, deadline_passed: bool
) -> tuple[ContextOutcome, tuple[str, ...]]:
    status = SearchStatus(hits.status)
    if status.refused:
        return ContextOutcome.BLOCKED, (f"search_{status.value}",)
    if not status.answered:
        return ContextOutcome.FAILED, (f"search_{status.value}",)
    if not hits.hits:
        return ContextOutcome.EMPTY, ("no_search_results",)
    reasons = ["deadline_passed"] if deadline_passed else []
    if not report.sources:
        unread = all(drop.reason == "unfetchable" for drop in report.dropped)
        reasons.append("all_unfetchable" if unread else "all_filtered")
    return (ContextOutcome.DEGRADED if reasons else ContextOutcome.COMPLETE), tuple(reasons)


def _record(
    hits: SearchHits,
    pages: Mapping[int, PageFetched],
    report: ResearchReport,
    outcome: ContextOutcome,
    reasons: tuple[str, ...],
) -> ContextReady:
    return ContextReady(
        event_id=context_event_id(hits.request_id),
        request_id=hits.request_id,
        topic=hits.topic,
        category=hits.category,
        outcome=outcome,
        reasons=reasons,
        search_status=hits.status,
        note=hits.note,
        provenance=hits.provenance,
        corpus=report.corpus,
        sources=tuple(
            _source(source, excerpts)
            for source, excerpts in zip(report.sources, report.excerpts, strict=True)
        ),
        dropped=tuple(
            DropRecord(
                rank=drop.position,
                title=drop.title,
                url=drop.url,
                reason=drop.reason.value,
                detail=drop.detail,
            )
            for drop in report.dropped
        ),
        references=tuple(Link(title=link.title, url=link.url) for link in report.references),
        internal_links=tuple(
            PostLink(title=link.title, slug=link.slug) for link in report.internal_links
        ),
        counts=Counts(
            searched=len(hits.hits),
            pages_arrived=len(pages),
            pages_read=sum(page.status == "ok" for page in pages.values()),
            sources=len(report.sources),
            dropped=len(report.dropped),
        ),
        timings=Timings(
            requested_at=hits.requested_at,
            searched_at=hits.searched_at,
            deadline_at=hits.deadline_at,
            last_page_at=max((page.fetched_at for page in pages.values()), default=None),
        ),
        settings_digest=_digest(hits.settings),
        pages=tuple(page.event_id for _, page in sorted(pages.items())),
    )


def _digest(settings: Mapping[str, str]) -> str:
    # Contexts with the same digest were judged under the same settings.
    canonical = orjson.dumps(dict(settings), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def _source(source: ScoredSource, excerpts: Sequence[Excerpt]) -> SourceRecord:
    return SourceRecord(
        rank=source.search_position,
        title=source.title,
        url=source.url,
        snippet=source.snippet,
        domain=source.domain,
        domain_credibility=source.domain_credibility,
        snippet_quality=source.snippet_quality,
        recency_score=source.recency_score,
        uniqueness_score=source.uniqueness_score,
        search_rank_score=source.search_rank_score,
        overall_score=source.overall_score,
        content_sha256=hashlib.sha256(source.content.encode()).hexdigest()
        if source.content
        else "",
        published_on=source.published_on,
        date_confidence=source.date_confidence,
        cached=source.cached,
        excerpts=tuple(
            ExcerptRecord(start=each.start, end=each.end, text_sha256=each.text_sha256)
            for each in excerpts
        ),
    )


def _why_unread(page: PageFetched | None) -> str:
    if page is None:
        return "its page had not arrived by the deadline"
    status = f"{page.status} {page.http_status}" if page.http_status else page.status
    return f"{status}: {page.detail}" if page.detail else status
