"""The site's own posts, read from PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LazyPosts"]


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

    async def __aenter__(self) -> LazyPosts:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        if self._pool is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._pool.close(), 2)
