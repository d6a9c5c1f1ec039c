"""Which requests are due, without scanning the table."""

from __future__ import annotations

import heapq
from datetime import datetime, timedelta

__all__ = ["DueIndex"]


class DueIndex:
    """When each key is due next. Setting and popping are logarithmic.

    A popped key is offered again after `retry`, then after twice as long and so on up to
    `longest`, until it is set anew or discarded: a tick that got lost on its way must not leave a
    request unanswered, and ticks that only wait in a long queue must not make it longer and longer.
    """

    def __init__(
        self,
        *,
        retry: timedelta = timedelta(seconds=10),
        longest: timedelta = timedelta(minutes=5),
    ) -> None:
        self._retry = retry
        self._longest = longest
        self._tries: dict[bytes, int] = {}
        self._due: dict[bytes, datetime] = {}
        self._next: dict[bytes, datetime] = {}
        self._heap: list[tuple[datetime, bytes]] = []

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: bytes, due_at: datetime) -> None:
        """Make `key` due at this time, instead of any time set before."""
        if self._due.get(key) == due_at:
            return
        self._due[key] = due_at
        self._tries.pop(key, None)
        self._schedule(key, due_at)

    def discard(self, key: bytes) -> None:
        """Forget `key`."""
        self._due.pop(key, None)
        self._next.pop(key, None)
        self._tries.pop(key, None)

    def clear(self) -> None:
        """Forget all keys."""
        self._due.clear()
        self._next.clear()
        self._tries.clear()
        self._heap.clear()

    def pop(self, now: datetime, limit: int = 200) -> list[tuple[bytes, datetime]]:
        """At most `limit` keys that are due at `now`, with the time each was due."""
        popped: list[tuple[bytes, datetime]] = []
        while self._heap and self._heap[0][0] <= now and len(popped) < limit:
            at, key = heapq.heappop(self._heap)
            if self._next.get(key) == at:
                popped.append((key, self._due[key]))
                tries = self._tries[key] = self._tries.get(key, 0) + 1
                wait = min(self._retry * 2 ** min(tries - 1, 20), self._longest)
                self._schedule(key, now + wait)
        return popped

    def _schedule(self, key: bytes, at: datetime) -> None:
        self._next[key] = at
        heapq.heappush(self._heap, (at, key))
