"""The same work asked for several times at once is done once, for all tasks, loops and threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

__all__ = ["SingleFlight"]

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Work under way by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, concurrent.futures.Future[T]] = {}

    async def run(
        self, key: str, work: Callable[[], Awaitable[T]], *, patience: float
    ) -> tuple[T, bool]:
        """The result of `work`, or of the same work that somebody else has begun.

        `patience` is how many seconds to wait for somebody else; then raises `TimeoutError`.

        The second value is True when `work` was done here. When the one who does it is cancelled
        or fails, another one takes over, so a caller's own trouble stays with that caller.
        """
        while True:
            with self._lock:
                flight = self._under_way.get(key)
                ours = flight is None
                if flight is None:
                    flight = self._under_way[key] = concurrent.futures.Future()
            if ours:
                return await self._lead(key, flight, work), True
            async with asyncio.timeout(patience):
                await _done(flight)
            if not flight.cancelled():
                return flight.result(), False

    async def _lead(
        self, key: str, flight: concurrent.futures.Future[T], work: Callable[[], Awaitable[T]]
    ) -> T:
        try:
            result = await work()
        except BaseException:
            self._land(key)
            flight.cancel()
            raise
        self._land(key)
        flight.set_result(result)
        return result

    def _land(self, key: str) -> None:
        with self._lock:
            del self._under_way[key]


async def _done(flight: concurrent.futures.Future[T]) -> None:
    """Wait for the flight without the power to cancel it, which `asyncio.wrap_future` has."""
    loop = asyncio.get_running_loop()
    landed = asyncio.Event()

    def tell(_: concurrent.futures.Future[T]) -> None:
        with contextlib.suppress(RuntimeError):  # that loop has ended meanwhile
            loop.call_soon_threadsafe(landed.set)

    flight.add_done_callback(tell)
    await landed.wait()
