"""The alert line in a test: findings in, a running alert application, waiting for posts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import schemas
from citeflow.settings import SiteConfig
from streams.config import StreamConfig
from streams.produce import produce
from streams.runner import WorkerRunner
from tests.support.discord import FakeDiscord

__all__ = ["COOLDOWN", "alerting", "finding", "send", "titles", "until"]

COOLDOWN = "findings.event_rejected.cooldown_minutes"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def finding(number: int, **changes: str) -> schemas.AuditFinding:
    """A warning of the kind `event_rejected`, unless changed."""
    values = {
        "event_id": f"event-{number}", "source": "search_agent", "kind": "event_rejected",
        "severity": "warn", "title": f"finding {number}", "body": "b", "dedup_key": f"d{number}",
    } | changes  # fmt: skip
    return schemas.AuditFinding(timestamp=NOW, **values)  # type: ignore[arg-type]


async def send(config: StreamConfig, *findings: schemas.AuditFinding) -> None:
    """Put findings on their topic."""
    records = [(record.key, schemas.encode(record)) for record in findings]
    await produce(config.broker, "audit.findings", records)


@contextlib.asynccontextmanager
async def alerting(
    config: StreamConfig, server: FakeDiscord, **settings: object
) -> AsyncIterator[WorkerRunner]:
    """The alert application in this process, posting to `server`, with a cooldown of an hour."""
    values = {"discord_webhook_url": server.url, COOLDOWN: 60, **settings}
    site_config = SiteConfig(values, environ={})
    async with WorkerRunner(config, site_config, apps=["alert"]) as runner:
        yield runner


async def until(condition: Callable[[], bool], seconds: float = 40) -> None:
    """Wait for a condition. Raises `TimeoutError`."""
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(0.05)


def titles(server: FakeDiscord) -> list[str]:
    """The titles posted, without the severity."""
    return [embed["title"].split(": ", 1)[-1] for embed in server.embeds]
