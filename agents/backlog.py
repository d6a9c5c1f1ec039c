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

# For so long the greatest age that was seen counts. A stage takes records from several partitions,
# not all of which lie equally far behind, and those that it handles one by one leave gaps.
LINGER_SECONDS = 2.0


class Backlog:
    """The greatest age of the records that a stage of this process has taken lately.

    It is zero when the stage has had nothing in hand for a moment, and where the process has no
    such stage. `clock` is the stream's.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._in_hand = 0
        self._age = 0.0
        self._seen_at = 0.0
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
        now = asyncio.get_running_loop().time()
        age = (self._clock() - made_at).total_seconds()
        if age >= self._age or now - self._seen_at > LINGER_SECONDS:
            self._seen_at = now
            self._set(age)
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
