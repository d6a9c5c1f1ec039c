"""Research in one call: `ResearchService.build_context` and `research_topic`.

The work is look-ups (references, own posts), the web tier (`WebResearcher`) and `assemble`. A
part that fails costs its own section only; nothing is raised to the caller.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from citeflow._assemble import ASSEMBLE_SETTINGS, ResearchReport, assemble
from citeflow.context.headings import RESEARCH_RENDER_SENTINEL
from citeflow.context.links import FetchPool, InternalLink, find_internal_links
from citeflow.context.references import (
    _DEFAULT_KNOWN_REFERENCES as _DEFAULT_KNOWN_REFERENCES,
)
from citeflow.context.references import (
    KNOWN_REFERENCES,
    get_known_references,
    match_references,
)
from citeflow.findings import emit_finding
from citeflow.quality import ResearchQualityService
from citeflow.web import WebResearcher

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from citeflow.settings import SiteConfig

__all__ = [
    "ASSEMBLE_SETTINGS",
    "KNOWN_REFERENCES",
    "RESEARCH_RENDER_SENTINEL",
    "ResearchReport",
    "ResearchService",
    "assemble",
    "get_known_references",
    "research_topic",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")

WEB_RESULTS = 5
"""Results asked of the search for one corpus."""


class WebTier(Protocol):
    """The part of `WebResearcher` that is used."""

    async def search(self, query: str, num_results: int = 5) -> list[dict[str, Any]]:
        """Results with the text of their pages."""

    async def search_simple(self, query: str, num_results: int = 5) -> list[dict[str, Any]]:
        """Results without text."""


class ResearchService:
    """Builds the corpus for a topic.

    `pool` is an `asyncpg` pool used for internal links alone, None disables them.
    `settings_service` is accepted for callers that pass one; all settings come from
    `site_config`, read at each call. `research_quality` and `web` default to services built from
    `site_config`.
    """

    def __init__(
        self,
        pool: FetchPool | None = None,
        settings_service: object | None = None,
        *,
        site_config: SiteConfig,
        research_quality: ResearchQualityService | None = None,
        web: WebTier | None = None,
    ) -> None:
        self.pool = pool
        self.settings_service = settings_service
        self._config = site_config
        self._quality = research_quality or ResearchQualityService(site_config=site_config)
        self._web = web

    async def build_context(
        self, topic: str, category: str = "technology", *, max_sources: int | None = None
    ) -> str:
        """The corpus for `topic` as Markdown, `""` when there is nothing to cite.

        `category` has no effect. `max_sources` caps the web sources (None: no cap).
        """
        return (await self.research(topic, category, max_sources=max_sources)).corpus

    async def research(
        self, topic: str, category: str = "technology", *, max_sources: int | None = None
    ) -> ResearchReport:
        """As `build_context`, with the sources, what was dropped and why, counts and timings.

        Internal links and the web are looked up at the same time, within
        `research_context_timeout_seconds`; what is not there by then is left out.
        """
        started = time.monotonic()
        references = match_references(topic, get_known_references(site_config=self._config))
        pages_read = self._config.get_bool("research_extract_web_content")
        (links, links_seconds), (results, web_seconds) = await asyncio.gather(
            _timed(self._internal_links(topic)), _timed(self._web_results(topic, pages_read))
        )
        report = assemble(
            topic=topic,
            results=results,
            searched=None,
            references=references,
            internal_links=links,
            site_config=self._config,
            now=datetime.now(UTC),
            pages_read=pages_read,
            max_sources=max_sources,
            research_quality=self._quality,
        )
        logger.info(
            "research context: %d references, %d internal links, %d web sources, %d characters",
            len(report.references),
            len(report.internal_links),
            len(report.sources),
            len(report.corpus),
        )
        total = time.monotonic() - started
        timings = {"internal_links": links_seconds, "web": web_seconds, "total": total}
        return replace(report, timings=timings)

    def _deadline(self) -> float:
        return self._config.get_float("research_context_timeout_seconds")

    async def _internal_links(self, topic: str) -> list[InternalLink]:
        try:
            return await asyncio.wait_for(
                find_internal_links(
                    self.pool, topic, table=self._config.get_str("internal_links_table")
                ),
                self._deadline(),
            )
        except TimeoutError:
            _report_lost_tier("internal_link_search_failed", topic, "it took too long")
            return []

    async def _web_results(self, topic: str, pages_read: bool) -> list[dict[str, Any]]:
        try:
            web = self._web or WebResearcher(site_config=self._config)
            look_up = web.search if pages_read else web.search_simple
            return await asyncio.wait_for(look_up(topic, num_results=WEB_RESULTS), self._deadline())
        except TimeoutError:
            reason = "it took too long"
        except Exception as exc:
            # The web tier must not cost the sections that need no web.
            logger.exception("the web tier failed")
            reason = type(exc).__name__
        _report_lost_tier("web_search_failed", topic, reason)
        return []


async def _timed(work: Awaitable[T]) -> tuple[T, float]:
    started = time.monotonic()
    return await work, time.monotonic() - started


def _report_lost_tier(kind: str, topic: str, reason: str) -> None:
    emit_finding(
        source="research_service",
        kind=kind,
        severity="info",
        title=f"A look-up failed: {kind}",
        body=f"For {topic[:200]!r}: {reason}; its section is left out.",
        extra={"topic": topic, "reason": reason},
    )


async def research_topic(
    query: str, max_sources: int | None = None, *, site_config: SiteConfig
) -> str:
    """The corpus for one question, without internal links.

    At most `max_sources` web sources (default: `writer_rag_research_topic_max_sources`). Returns
    `""` when there is nothing to cite and `[research stub for: <query>]` when anything fails.
    """
    try:
        if max_sources is None:
            max_sources = site_config.get_int("writer_rag_research_topic_max_sources")
        logger.info("research_topic: at most %d web sources", max_sources)
        service = ResearchService(pool=None, site_config=site_config)
        return await service.build_context(query, max_sources=max_sources)
    except Exception:
        # The writer that asked keeps moving with a visible mark instead of a corpus.
        logger.exception("research_topic failed")
        return f"[research stub for: {query}]"
