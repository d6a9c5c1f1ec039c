"""Not asking one site too much: slots and intervals by host, pauses it asks for, robots.txt."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from citeflow.fetch.limits import POLITE_LIMITS
from citeflow.fetch.robots import Robots, parse_robots
from citeflow.fetch.targets import Target
from citeflow.fetch.user_agent import PRODUCT

__all__ = [
    "DisallowedError",
    "HostPausedError",
    "Hosts",
    "Manners",
    "RobotsRules",
    "retry_after_seconds",
]


class DisallowedError(Exception):
    """The site's robots.txt asks us not to read the page."""


class HostPausedError(Exception):
    """The host has asked to be left alone for longer than there is time."""


@dataclass(slots=True)
class _Host:
    running: int = 0
    next_start: float = 0.0
    paused_until: float = 0.0
    waiting: list[asyncio.Future[None]] = field(default_factory=list)


class Hosts:
    """Who may ask which host now. One event loop; times are the loop's."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}

    @contextlib.asynccontextmanager
    async def slot(
        self, name: str, *, at_once: int, interval: float, until: float
    ) -> AsyncIterator[None]:
        """Wait for a turn at the host: at most `at_once` requests run, and none starts within
        `interval` seconds of another. Raises `HostPausedError` when the host is paused beyond
        the loop time `until`."""
        host = self._hosts.setdefault(name, _Host())
        try:
            while host.running >= at_once:
                turn = asyncio.get_running_loop().create_future()
                host.waiting.append(turn)
                try:
                    await turn
                finally:
                    # Gone already when it was granted; then the next one in line is asked too.
                    with contextlib.suppress(ValueError):
                        host.waiting.remove(turn)
            host.running += 1
            try:
                await _turn(host, interval, until)
                yield
            finally:
                host.running -= 1
                if host.waiting:
                    turn = host.waiting.pop(0)
                    if not turn.done():
                        turn.set_result(None)
        finally:
            idle = not host.running and not host.waiting
            if idle and max(host.next_start, host.paused_until) <= _now():
                self._hosts.pop(name, None)

    def pause(self, name: str, seconds: float) -> None:
        """Leave the host alone for `seconds`."""
        host = self._hosts.setdefault(name, _Host())
        host.paused_until = max(host.paused_until, _now() + seconds)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _turn(host: _Host, interval: float, until: float) -> None:
    if host.paused_until > until:
        raise HostPausedError
    start = max(_now(), host.next_start, host.paused_until)
    host.next_start = start + interval
    if start > _now():
        await asyncio.sleep(start - _now())


def retry_after_seconds(header: str) -> float | None:
    """The seconds of a Retry-After header, from a number or a date; None when there is none."""
    header = header.strip()
    if header.isdecimal() and len(header) < 9:
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Manners:
    """How one fetch treats the sites it comes to. `until`: the loop time of its deadline."""

    hosts: Hosts
    robots: RobotsRules | None
    at_once: int
    interval: float
    until: float

    @contextlib.asynccontextmanager
    async def visit(self, target: Target) -> AsyncIterator[None]:
        """A turn at the target's host. Raises `HostPausedError` and `DisallowedError`."""
        asked = self.robots is not None and not target.exempt
        if asked and self.robots and not await self.robots.allows(target, PRODUCT):
            raise DisallowedError
        async with self.hosts.slot(
            target.origin.host, at_once=self.at_once, interval=self.interval, until=self.until
        ):
            yield

    def wait_before_retry(self, target: Target, retry_after: float | None) -> float | None:
        """Seconds to wait before the one repetition, None when there is no time for it.

        A time the server named counts for all requests to its host.
        """
        if retry_after is not None:
            self.hosts.pause(target.origin.host, min(retry_after, POLITE_LIMITS.longest_pause))
        delay = POLITE_LIMITS.retry_delay if retry_after is None else retry_after
        return delay if _now() + delay < self.until else None


class RobotsRules:
    """The rules of the sites asked lately, one for each origin. `load` reads a robots.txt."""

    def __init__(self, load: Callable[[Target], Awaitable[str]]) -> None:
        self._load = load
        self._known: OrderedDict[object, tuple[float, asyncio.Task[Robots]]] = OrderedDict()

    async def allows(self, target: Target, product: str) -> bool:
        """True when the site does not ask `product` to stay away from the target; also when its
        robots.txt could not be read."""
        found = self._known.get((target.origin, product))
        if found is None or found[0] < _now():
            task = asyncio.ensure_future(self._read(target, product))
            self._known[target.origin, product] = (_now() + POLITE_LIMITS.robots_seconds, task)
            self._known.move_to_end((target.origin, product))
            while len(self._known) > POLITE_LIMITS.robots_kept:
                self._known.popitem(last=False)
        else:
            task = found[1]
        # Shielded: who gives up takes the answer from nobody else.
        robots = await asyncio.shield(task)
        return robots.allows(target.url.raw_path.decode("ascii", "replace"))

    async def _read(self, target: Target, product: str) -> Robots:
        return parse_robots(await self._load(target), product)

    async def aclose(self) -> None:
        """Give up what is being read."""
        tasks = [task for _, task in self._known.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
