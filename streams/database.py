"""PostgreSQL, as a worker uses it."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LazyPool"]


class LazyPool:
    """A pool of connections, made at first use and again after the database went away.

    A worker starts and works without it: a failing query is the caller's to report.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: asyncpg.Pool[Any] | None = None
        self._lock = asyncio.Lock()

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> Sequence[Any]:
        """Run a query. Raises what asyncpg raises."""
        rows: Sequence[Any] = await (await self._opened()).fetch(query, *args, timeout=timeout)
        return rows

    async def execute(self, query: str, *args: Any) -> None:
        """Run a statement. Raises what asyncpg raises."""
        await (await self._opened()).execute(query, *args)

    async def _opened(self) -> asyncpg.Pool[Any]:
        async with self._lock:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._url, min_size=0, max_size=4, timeout=5, command_timeout=5
                )
        return self._pool

    async def __aenter__(self) -> LazyPool:
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
