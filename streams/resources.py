"""What the search and fetch agents need of the outside: engines, pages, the posts database."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

import asyncpg

from citeflow.fetch import PageFetcher
from citeflow.search import SearchChain
from citeflow.settings import SiteConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LazyPosts", "Resources", "utc_now"]


def utc_now() -> datetime:
    """The clock of the stream."""
    return datetime.now(UTC)


class LazyPosts:
    """The posts database, connected at first use and again after it went away.

    A worker starts and works without it: a failing query is the caller's to report.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: asyncpg.Pool[Any] | None = None
        self._lock = asyncio.Lock()

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> Sequence[Any]:
        """Run a query. Raises what asyncpg raises."""
        async with self._lock:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._url, min_size=0, max_size=4, timeout=5, command_timeout=5
                )
        rows: Sequence[Any] = await self._pool.fetch(query, *args, timeout=timeout)
        return rows

    async def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._pool.close(), 2)


class Resources:
    """Opened before the agents start, closed after they stopped."""

    def __init__(self, site_config: SiteConfig, *, database_url: str = "") -> None:
        self.searcher = SearchChain(site_config)
        self.fetcher = PageFetcher(site_config, cache_setting="stream_page_cache_seconds")
        self.posts = LazyPosts(database_url) if database_url else None
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Resources:
        await self._stack.enter_async_context(self.searcher)
        await self._stack.enter_async_context(self.fetcher)
        if self.posts is not None:
            self._stack.push_async_callback(self.posts.close)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()
