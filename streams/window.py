"""Handle events out of order, acknowledge them in order.

Faust commits the end of the run of acknowledged offsets, but its gap check lets a commit pass an
event that is still being handled (faust-streaming issue 606): an event acknowledged early loses
the ones before it in a crash. Acknowledging strictly in order per partition leaves it no gap.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["AckWindow"]

E = TypeVar("E")
P = TypeVar("P")


@dataclass(slots=True)
class _Lane:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class AckWindow(Generic[P, E]):
    """Runs at most `limit` handlers at once; acknowledges in the order of submission.

    Events with the same `lane` are handled one after the other, in the order of submission; a lane
    that stands still holds up the others when it fills the room with events that wait for it.

    Events that are done but wait behind a slower one are held, and those that wait for their lane:
    with those being handled at most `held` times `limit`.

    `ack` is awaited once for each event, in order per partition, after its handler and those
    of all events before it are done. A handler that raises or is cancelled leaves its event,
    and all behind it in that partition, unacknowledged: they come back.
    """

    def __init__(self, ack: Callable[[E], Awaitable[object]], *, limit: int, held: int = 4) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        self._ack = ack
        self._slots = asyncio.Semaphore(limit)
        # Without it, all that a partition delivers would pile up behind one slow event.
        self._room = asyncio.Semaphore(limit * held)
        self._queues: defaultdict[P, deque[list[E | bool]]] = defaultdict(deque)
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining: set[P] = set()
        self._lanes: dict[Hashable, _Lane] = {}

    async def drained(self) -> None:
        """Wait until no handler is running."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def submit(
        self,
        partition: P,
        event: E,
        handler: Callable[[E], Awaitable[object]],
        *,
        lane: Hashable = None,
    ) -> None:
        """Start handling `event`; waits while there is no room for it. None is no lane."""
        await self._room.acquire()
        if lane is None:  # in a lane, what waits for its turn takes no slot from the others
            await self._slots.acquire()
        entry: list[E | bool] = [event, False]
        self._queues[partition].append(entry)
        task = asyncio.create_task(self._run(partition, entry, event, handler, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Stop all handlers; what they were at stays unacknowledged."""
        for task in self._tasks:
            task.cancel()

    async def _run(
        self,
        partition: P,
        entry: list[E | bool],
        event: E,
        handler: Callable[[E], Awaitable[object]],
        lane: Hashable,
    ) -> None:
        if lane is None:
            try:
                await handler(event)
            finally:
                self._slots.release()
        else:
            async with self._in(lane), self._slots:
                await handler(event)
        entry[1] = True
        await self._acknowledge_done(partition)

    @contextlib.asynccontextmanager
    async def _in(self, name: Hashable) -> AsyncIterator[None]:
        lane = self._lanes.setdefault(name, _Lane())
        lane.users += 1
        try:
            async with lane.turn:  # first come, first served
                yield
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[name]

    async def _acknowledge_done(self, partition: P) -> None:
        if partition in self._draining:
            return  # whoever is at it looks at the head again after each acknowledgement
        self._draining.add(partition)
        queue = self._queues[partition]
        try:
            while queue and queue[0][1]:
                done, _ = queue.popleft()
                await self._ack(done)  # type: ignore[arg-type]
                self._room.release()
        finally:
            self._draining.discard(partition)
        if not queue:
            self._queues.pop(partition, None)
