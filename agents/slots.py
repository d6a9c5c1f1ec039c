"""So much at once, by a limit that may change while it is in use."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable

__all__ = ["Slots"]


class Slots:
    """A semaphore whose size is `limit()`, asked at each use; 1 at least. First come, first served.

    A smaller limit takes effect as slots are given back.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._taken = 0
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()

    async def acquire(self) -> bool:
        """Take a slot, waiting for one. Always true, as a semaphore's is."""
        if not self._waiting and self._taken < self._size():
            self._taken += 1
            return True
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # it was given a slot that nobody uses now
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise
        return True

    def release(self) -> None:
        """Give a slot back."""
        self._taken -= 1
        while self._waiting and self._taken < self._size():
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc_info: object) -> None:
        self.release()

    def _size(self) -> int:
        return max(self._limit(), 1)
