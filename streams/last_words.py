"""What a worker says when it ends on a fault: straight to Discord, for Kafka may be the fault.

Findings of events need no such way: an event whose findings could not be sent is not acknowledged,
and comes back with them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

import schemas
from agents.alerts import DiscordWebhook, finding_message
from citeflow.findings import Severity
from citeflow.settings import SiteConfig

__all__ = ["say_last_words"]

logger = logging.getLogger(__name__)

SECONDS = 8.0
# A supervisor starts a worker again and again while the broker is away: not each of them is told.
QUIET_SECONDS = 900.0


async def say_last_words(
    site_config: SiteConfig, reason: str, *, stamp: Path | None = None
) -> None:
    """Post that the worker ended, and why, to the critical webhook or else to the other one.

    Once in a quarter of an hour on this machine, which the time of the file `stamp` tells; within
    eight seconds. Raises nothing but `CancelledError`.
    """
    stamp = stamp or platformdirs.user_state_path("citeflow") / "last-words"
    hooks = [
        DiscordWebhook(site_config, setting)
        for setting in ("discord_critical_webhook_url", "discord_webhook_url")
    ]
    hook = next((hook for hook in hooks if hook.configured), None)
    if hook is None or _said_lately(stamp):
        return
    now = datetime.now(UTC)
    finding = schemas.AuditFinding(
        event_id=schemas.event_id("", "worker_ended", now.isoformat()),
        timestamp=now,
        source="worker",
        kind="worker_ended",
        severity=Severity.CRITICAL.value,
        title="A worker ended on a fault",
        body=reason,
        dedup_key="worker_ended",
    )
    try:
        async with asyncio.timeout(SECONDS):
            if not await hook.post(finding_message(finding)):
                stamp.parent.mkdir(parents=True, exist_ok=True)
                stamp.touch()
    except (TimeoutError, OSError) as exc:
        logger.error("the last words were not taken: %s", type(exc).__name__)
    finally:
        await hook.aclose()


def _said_lately(stamp: Path) -> bool:
    try:
        return time.time() - stamp.stat().st_mtime < QUIET_SECONDS
    except OSError:
        return False
