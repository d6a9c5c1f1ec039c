"""The same page asked for twice: read once while under way, and for a while afterwards."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace

from citeflow.fetch.limits import POLITE_LIMITS
from citeflow.fetch.outcome import FetchOutcome

__all__ = ["Flights", "PageCache"]


@dataclass(slots=True)
class _Flight:
    task: asyncio.Task[FetchOutcome]
    passengers: int = 0


class Flights:
    """Fetches under way, by what is fetched. One event loop."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight] = {}

    async def join(
        self, key: Hashable, begin: Callable[[], Awaitable[FetchOutcome]]
    ) -> FetchOutcome:
        """The outcome of the fetch under way for `key`, else of `begin`.

        It goes on for as long as anybody waits for it; the last to be cancelled cancels it.
        """
        flight = self._flights.get(key)
        if flight is None:
            task = asyncio.ensure_future(_as_coroutine(begin))
            flight = self._flights[key] = _Flight(task)
            task.add_done_callback(lambda _: self._flights.pop(key, None))
        flight.passengers += 1
        try:
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            if flight.passengers == 1 and not flight.task.done():
                self._flights.pop(key, None)  # nobody may board one that is being cancelled
                flight.task.cancel()
                await asyncio.wait([flight.task])
            raise
        finally:
            flight.passengers -= 1


async def _as_coroutine(begin: Callable[[], Awaitable[FetchOutcome]]) -> FetchOutcome:
    return await begin()


class PageCache:
    """Pages that were read, the most recently used ones. `key` says what else they depend on."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, FetchOutcome] = OrderedDict()

    def get(self, key: Hashable, *, not_before: float) -> FetchOutcome | None:
        """The page, marked as cached, if it was read since the epoch time `not_before`."""
        page = self._pages.get(key)
        if page is None:
            return None
        if page.fetched_at < not_before:
            del self._pages[key]
            return None
        self._pages.move_to_end(key)
        return replace(page, cached=True)

    def put(self, key: Hashable, page: FetchOutcome) -> None:
        """Keep a page that has text; others may be different the next time."""
        if page.ok:
            self._pages[key] = page
            self._pages.move_to_end(key)
            while len(self._pages) > POLITE_LIMITS.cached_pages:
                self._pages.popitem(last=False)
