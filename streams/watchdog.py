"""Watching a worker that may be alive and idle for ever.

Faust only logs when a stream, a commit or a recovery stops going forward, and a process that was
stopped for longer than its session goes on as if its partitions were still its own. Each of these
ends the worker with a reason, so that a supervisor starts a new one: nothing is lost by that.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from streams.config import StreamConfig

if TYPE_CHECKING:
    import faust

__all__ = ["Watchdog", "WorkerStuckError", "unready"]

INTERVAL = 0.5
BROKER_PROBE_SECONDS = 2.0


class WorkerStuckError(RuntimeError):
    """The worker no longer goes forward; it ends, and its events are handled by the next."""


class Watchdog:
    """Looks at the applications of one process; `clock` is monotonic, in seconds."""

    def __init__(
        self,
        apps: Sequence[faust.App],
        config: StreamConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._apps = apps
        self._config = config
        self._clock = clock
        self._looked_at = clock()
        self._since: dict[str | tuple[str, str], tuple[object, float]] = {}

    async def run(self) -> None:
        """Look twice a second. Raises `WorkerStuckError`; never returns."""
        while True:
            await asyncio.sleep(INTERVAL)
            self.look(broker_answers=await self._broker_answers())

    def look(self, *, broker_answers: bool) -> None:
        """Compare with the looks before. Raises `WorkerStuckError`."""
        now = self._clock()
        paused, self._looked_at = now - self._looked_at, now
        # The loop may lag a little; a session's length is what the group waits for a member.
        if paused > self._config.session_timeout + BROKER_PROBE_SECONDS + INTERVAL:
            raise WorkerStuckError(
                f"the process stood still for {paused:.1f} s; its partitions may be another's"
            )
        self._expect("broker", broker_answers, self._config.broker_timeout, "no broker answers")
        for app in self._apps:
            name = app.conf.id
            ready = not unready(app)
            limit = self._config.stall_timeout
            self._expect((name, "ready"), ready, limit, f"{name}: no partitions, or no recovery")
            behind = _behind(app)
            for subject, state in behind.items():
                self._changes((name, subject), state, limit, f"{name}: {subject} did not move")
            for subject in self._subjects(name) - behind.keys():
                self._since.pop((name, subject), None)

    def _subjects(self, name: str) -> set[str]:
        return {key[1] for key in self._since if isinstance(key, tuple) and key[0] == name} - {
            "ready"
        }

    def _expect(
        self, subject: str | tuple[str, str], holds: bool, limit: float, reason: str
    ) -> None:
        if holds:
            self._since.pop(subject, None)
        else:
            self._changes(subject, False, limit, reason)

    def _changes(
        self, subject: str | tuple[str, str], value: object, limit: float, reason: str
    ) -> None:
        before = self._since.get(subject)
        if before is None or before[0] != value:
            self._since[subject] = (value, self._clock())
        elif self._clock() - before[1] > limit:
            raise WorkerStuckError(f"{reason} for {limit:g} s")

    async def _broker_answers(self) -> bool:
        for address in self._config.broker.split(","):
            host, _, port = address.strip().rpartition(":")
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(BROKER_PROBE_SECONDS):
                    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                writer.close()
                return True
        return False


def unready(app: faust.App) -> str:
    """Why an application does not work yet, blank when it does."""
    if app.rebalancing:
        return "rebalancing"
    if not app.tables.actives_ready:
        return "recovering"
    return ""


def _behind(app: faust.App) -> dict[str, object]:
    """What is taken and not done with: what is acknowledged but not committed, by partition with
    its committed offset; and the first event still being handled."""
    consumer: Any = app.consumer
    behind: dict[str, object] = {
        f"{partition.topic}-{partition.partition}": consumer._committed_offset.get(partition)
        for partition, acked in list(consumer._acked.items())
        if acked
    }
    waiting = sorted((m.topic, m.partition, m.offset) for m in list(consumer._unacked_messages))
    if waiting:
        behind["events in flight"] = waiting[0]
    return behind
