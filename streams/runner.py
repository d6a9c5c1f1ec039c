"""Runs the applications of a worker: waits for the broker, starts, watches, stops in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from aiokafka.errors import KafkaError

from citeflow.findings import Finding
from citeflow.settings import SiteConfig
from streams.apps import APP_NAMES, build_apps, required_topics
from streams.audit import audit_record
from streams.config import StreamConfig
from streams.metrics import exposition, note_finding
from streams.publisher import Publisher, PublishError
from streams.topics import ensure_topics
from streams.voice import say
from streams.watchdog import Watchdog, unready

if TYPE_CHECKING:
    import faust

__all__ = ["BrokerUnreachableError", "WorkerCrashedError", "WorkerRunner", "wait_for_topics"]

logger = logging.getLogger(__name__)


class BrokerUnreachableError(RuntimeError):
    """The broker did not answer in time; check CITEFLOW_BROKER and that it runs."""


class WorkerCrashedError(RuntimeError):
    """An application of the worker ended on a fault; its unacknowledged events come back."""


async def wait_for_topics(config: StreamConfig, *, timeout: float = 60.0) -> None:
    """Wait for the broker, then create and check the topics.

    Raises `BrokerUnreachableError` after `timeout` seconds without a broker, `TopicError` when
    topics do not fit.
    """
    loop = asyncio.get_running_loop()
    waiting = False
    give_up_at = loop.time() + timeout
    while True:
        try:
            await ensure_topics(
                config.broker,
                required_topics(config),
                partitions=config.partitions,
                replication=config.replication,
            )
        except (KafkaError, OSError) as exc:
            if loop.time() >= give_up_at:
                raise BrokerUnreachableError(f"no broker at {config.broker}") from exc
            if not waiting:
                waiting = True
                say(f"waiting for the broker at {config.broker}, {timeout:g} s at most")
            await asyncio.sleep(0.5)
        else:
            return


class WorkerRunner:
    """The applications of one process, started and stopped together.

    `apps` names which of `streams.apps.APP_NAMES` to run.
    """

    def __init__(
        self,
        config: StreamConfig,
        site_config: SiteConfig,
        *,
        apps: Sequence[str] = APP_NAMES,
    ) -> None:
        self._config = config
        self._apps = build_apps(apps, config, site_config)
        self._watchdog = Watchdog(self._apps, config)

    async def start(self) -> None:
        """Start all applications; returns when each has its partitions and its table.

        Raises what starting raises; whatever was started is stopped first.
        """
        try:
            await asyncio.gather(*(self._start_app(app) for app in self._apps))
        except BaseException:
            await self.stop()
            raise
        # From here on a pause counts, even one before `wait` has its first turn.
        self._watchdog = Watchdog(self._apps, self._config)

    def unready(self) -> dict[str, str]:
        """Why the worker is not ready, by application; empty when it is."""
        return {app.conf.id: reason for app in self._apps if (reason := unready(app))}

    def metrics(self) -> bytes:
        """What the worker counts and measures, for Prometheus."""
        return exposition(self._apps)

    async def report(self, finding: Finding) -> None:
        """Put a finding of the process itself on its topic; one that cannot be sent is logged."""
        now = datetime.now(UTC)
        record = audit_record(
            finding, stage="worker", request_id=f"worker {now.isoformat()}", timestamp=now
        )
        try:
            await Publisher(self._apps[0]).send(msgspec.structs.replace(record, request_id=None))
            note_finding(finding.kind, "emitted")
        except PublishError as exc:
            logger.error("a finding could not be sent: %s: %s", finding.title, exc)

    async def wait(self) -> None:
        """Wait until an application ends.

        Raises `WorkerCrashedError` when one ended by a fault, `WorkerStuckError` when one does
        not go forward.
        """
        waits = [asyncio.ensure_future(app.wait_until_stopped()) for app in self._apps]
        watching = asyncio.ensure_future(self._watchdog.run())
        waits.append(watching)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stuck = watching.exception() if watching.done() else None
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if stuck is not None:
            raise stuck
        for app in self._apps:
            if app.crashed:
                raise WorkerCrashedError(f"{app.conf.id}: {app.crash_reason!r}")

    async def stop(self) -> bool:
        """Drain and stop within `stop_timeout`. False when something had to be cut off.

        What is cut off was not acknowledged and is handled again by the next worker.
        """
        stops = [asyncio.ensure_future(app.stop()) for app in self._apps]
        done, pending = await asyncio.wait(stops, timeout=self._config.stop_timeout)
        for task in pending:
            task.cancel()
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.warning("an application stopped badly: %r", error)
        return not pending

    async def __aenter__(self) -> WorkerRunner:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    @staticmethod
    async def _start_app(app: faust.App) -> None:
        app.finalize()
        await app.start()
        if app.crashed:
            raise WorkerCrashedError(f"{app.conf.id}: {app.crash_reason!r}")
