"""How far a stage is behind the one before it, so that the one before does not run ahead.

A search is quicker than reading what it found, and reading is quicker than the join when much is
read at once. Left alone, a flood of requests is searched at once, and its pages come up for
reading, or for scoring, when their requests' deadlines have passed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime

__all__ = ["Backlog"]

# For so long what was last seen counts although nothing is being handled: between one event and
# the next of a stage that handles them one by one.
LINGER_SECONDS = 1.0


class Backlog:
    """The age of the record that a stage of this process has taken last.

    It is zero while the stage has nothing in hand, and where the process has no such stage.
    `clock` is the stream's.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._in_hand = 0
        self._age = 0.0
        self._changed = asyncio.Event()
        self._reset: asyncio.TimerHandle | None = None

    @property
    def age(self) -> float:
        """Seconds that records wait for the stage."""
        return self._age

    @contextlib.contextmanager
    def handling(self, made_at: datetime) -> Iterator[None]:
        """A record made at this time is in hand inside the block."""
        if self._reset is not None:
            self._reset.cancel()
            self._reset = None
        self._in_hand += 1
        self._set((self._clock() - made_at).total_seconds())
        try:
            yield
        finally:
            self._in_hand -= 1
            if not self._in_hand:
                loop = asyncio.get_running_loop()
                self._reset = loop.call_later(LINGER_SECONDS, self._set, 0.0)

    async def wait_below(self, limit: Callable[[], float], patience: float) -> None:
        """Wait while the age exceeds `limit()` seconds, for `patience` seconds at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(patience, 0.0)):
                while self._age > limit():
                    await self._changed.wait()

    def _set(self, age: float) -> None:
        self._age = age
        self._changed.set()
        self._changed = asyncio.Event()
