"""How far reading is behind searching, so that searching waits instead of running ahead.

A search is quicker than reading what it found. Left alone, a flood of requests is searched at once
and most of its pages come up for reading when their requests' deadlines have passed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime

__all__ = ["Backlog"]


class Backlog:
    """The age of the hits that the fetch agent of this process has taken last.

    It is zero while no hits are being read, and where there is no fetch agent. `clock` is the
    stream's.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._reading = 0
        self._age = 0.0
        self._changed = asyncio.Event()

    @property
    def age(self) -> float:
        """Seconds that hits wait from their search until their pages' turn comes."""
        return self._age

    @contextlib.contextmanager
    def reading(self, searched_at: datetime) -> Iterator[None]:
        """The hits of a search made at this time are being read inside the block."""
        self._reading += 1
        self._set((self._clock() - searched_at).total_seconds())
        try:
            yield
        finally:
            self._reading -= 1
            if not self._reading:
                self._set(0.0)

    async def wait_below(self, limit: Callable[[], float]) -> None:
        """Wait while the age exceeds `limit()` seconds, asked anew whenever the age changes."""
        while self._age > limit():
            await self._changed.wait()

    def _set(self, age: float) -> None:
        self._age = age
        self._changed.set()
        self._changed = asyncio.Event()
