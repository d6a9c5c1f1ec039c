"""A worker's settings, followed in PostgreSQL where there is one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from citeflow.findings import Finding, collect_findings
from citeflow.settings import SiteConfig
from citeflow.settings_store import SettingsStore, emit_outage
from streams.config import StreamConfig

__all__ = ["Outages", "following_settings"]


class Outages:
    """Outages of the settings database, kept until a worker can put them on Kafka."""

    def __init__(self) -> None:
        self._findings: asyncio.Queue[Finding] = asyncio.Queue(maxsize=16)

    def note(self, reason: str) -> None:
        """One more outage has begun."""
        with collect_findings() as found:
            emit_outage(reason)
        for finding in found:
            if not self._findings.full():
                self._findings.put_nowait(finding)

    @contextlib.asynccontextmanager
    async def reported_to(
        self, report: Callable[[Finding], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """Hand each to `report`, inside the block."""

        async def go_on() -> None:
            while True:
                await report(await self._findings.get())

        task = asyncio.create_task(go_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def following_settings(
    config: StreamConfig, site_config: SiteConfig
) -> AsyncIterator[Outages]:
    """`site_config` with the values of `app_settings` inside the block, if there is a database."""
    outages = Outages()
    if not config.database_url:
        yield outages
        return
    async with SettingsStore(config.database_url, site_config, on_outage=outages.note):
        yield outages
