"""`WebResearcher`: search the web and read what was found."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Protocol

from citeflow.context.render import link
from citeflow.context.untrusted import clean_line, clean_text, escape_inline
from citeflow.fetch.outcome import FetchOutcome, FetchStatus
from citeflow.findings import emit_finding
from citeflow.quality.urls import host_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from citeflow.search.outcome import SearchOutcome
    from citeflow.settings import SiteConfig

__all__ = ["Fetcher", "Searcher", "WebResearcher", "report_unread_pages"]

logger = logging.getLogger(__name__)

_PROMPT_HEADER = "WEB RESEARCH (current sources \u2014 cite these, do not fabricate URLs):"
_KEY_CONTENT_CHARS = 300


class Searcher(Protocol):
    """What asks the search backends, such as `citeflow.search.SearchChain`."""

    async def search(self, query: str, k: int = 5, timeout: float | None = None) -> SearchOutcome:
        """At most `k` hits for `query`; never raises."""


class Fetcher(Protocol):
    """What reads a page, such as `citeflow.fetch.PageFetcher`."""

    async def fetch(self, url: str, *, timeout: float | None = None) -> FetchOutcome:
        """The page at `url`; never raises."""


class WebResearcher:
    """Searches, and reads the pages found, within the limits that the settings give at each call.

    `search` and `fetcher` are used when given, and stay the caller's to close; otherwise a
    search chain and a page fetcher are opened for each call.
    """

    def __init__(
        self,
        *,
        site_config: SiteConfig,
        search: Searcher | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        self._config = site_config
        self._search = search
        self._fetcher = fetcher

    async def search(self, query: str, num_results: int = 5) -> list[dict[str, Any]]:
        """Results in the engine's order, each with the text of its page.

        Dicts of `title`, `url`, `snippet`, `content` (main text, `""` when the page could not be
        read) and `search_position` (0-based place in the engine's order); `published_on` and
        `date_confidence` of a page with a date, and `cached` of one that was kept, as in
        `ScoredSource`. Results without an address are left out. Pages that could not be read are
        reported as one finding `web_research_extract_failed` per host. A failed search yields `[]`.
        """
        results = await self.search_simple(query, num_results)
        if not results:
            return []
        limit = asyncio.Semaphore(self._config.get_int("web_research_max_concurrent"))
        async with self._open_fetcher() as fetcher, asyncio.TaskGroup() as group:

            async def read(result: dict[str, Any]) -> FetchOutcome:
                async with limit:
                    return await _fetch(fetcher, result["url"])

            tasks = [group.create_task(read(result)) for result in results]
        outcomes = [task.result() for task in tasks]
        for result, outcome in zip(results, outcomes, strict=True):
            if not outcome.ok:
                continue
            result["content"] = outcome.text
            if outcome.published_on:
                result["published_on"] = outcome.published_on
                result["date_confidence"] = outcome.date_confidence
            if outcome.cached:
                result["cached"] = True
        report_unread_pages(query, outcomes)
        return results

    async def search_simple(self, query: str, num_results: int = 5) -> list[dict[str, Any]]:
        """As `search` without reading any page: `content` is always `""`."""
        async with self._open_search() as search:
            outcome = await search.search(query, k=num_results)
        if not outcome.hits:
            logger.warning(
                "web search for %r found nothing (%s): %s",
                query,
                outcome.status.value,
                outcome.note or "no reason given",
            )
        return [
            {
                "title": hit.title,
                "url": hit.url.strip(),
                "snippet": hit.snippet,
                "content": "",
                "search_position": position,
            }
            for position, hit in enumerate(outcome.hits[: max(0, num_results)])
            if hit.url.strip()
        ]

    def format_for_prompt(self, results: Sequence[Mapping[str, Any]], max_chars: int = 3000) -> str:
        """`results` as a prompt block of numbered sources, `""` when there are none.

        Ends before the first entry with which the entries would exceed `max_chars` characters
        (the header line is not counted). Texts and addresses are made safe as in a corpus;
        results without a usable address are left out.
        """
        entries: list[str] = []
        used = 0
        for result in results:
            entry = _prompt_entry(len(entries) + 1, result)
            if entry is None:
                continue
            used += len(entry)
            if used > max_chars:
                break
            entries.append(entry)
        return "\n".join([_PROMPT_HEADER, *entries]) if results else ""

    @contextlib.asynccontextmanager
    async def _open_search(self) -> AsyncIterator[Searcher]:
        if self._search is not None:
            yield self._search
            return
        from citeflow.search import SearchChain

        async with SearchChain(self._config) as chain:
            yield chain

    @contextlib.asynccontextmanager
    async def _open_fetcher(self) -> AsyncIterator[Fetcher]:
        if self._fetcher is not None:
            yield self._fetcher
            return
        from citeflow.fetch import PageFetcher

        async with PageFetcher(self._config) as fetcher:
            yield fetcher


async def _fetch(fetcher: Fetcher, url: str) -> FetchOutcome:
    try:
        return await fetcher.fetch(url)
    except Exception as exc:
        # A fetcher given by the caller may raise; one page must not cost the others.
        logger.exception("reading a page of %s failed", host_of(url))
        return FetchOutcome(FetchStatus.ERROR, url, detail=type(exc).__name__)


def report_unread_pages(query: str, outcomes: Sequence[FetchOutcome]) -> None:
    """Emit one finding `web_research_extract_failed` for each host with an unread page."""
    by_host: dict[str, list[FetchOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if not outcome.ok:
            by_host[host_of(outcome.url) or "unknown host"].append(outcome)
    for host, failed in by_host.items():
        reasons = [
            f"{outcome.status.value} {outcome.http_status or ''}".rstrip() for outcome in failed
        ]
        emit_finding(
            source="web_research",
            kind="web_research_extract_failed",
            severity="info",
            title=f"Pages of {host} could not be read",
            body=f"{len(failed)} of {len(outcomes)} pages for {query[:200]!r}: "
            + ", ".join(reasons),
            dedup_key=f"web_research_extract_failed:{host}",
            extra={
                "host": host,
                "urls": [outcome.url for outcome in failed],
                "reasons": reasons,
            },
        )


def _prompt_entry(number: int, result: Mapping[str, Any]) -> str | None:
    linked = link(str(result.get("title") or "Untitled"), str(result.get("url") or ""))
    if linked is None:
        return None
    lines = ["", f"{number}. {linked}"]
    if snippet := clean_line(str(result.get("snippet") or "")):
        lines.append(f"   {escape_inline(snippet)}")
    if content := clean_text(str(result.get("content") or "")):
        first_line = content.split("\n", 1)[0][:_KEY_CONTENT_CHARS]
        lines.append(f"   Key content: {escape_inline(first_line)}")
    return "\n".join(lines)
