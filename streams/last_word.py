"""What a worker has to say when it ends on a fault.

The fault may be that Kafka takes nothing. So the finding is kept in a file and posted from here;
the next worker puts it on `audit.findings`, where it belongs, and it is posted then if it was not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import platformdirs

import schemas
from agents.alerts import Channels, Delivery, finding_message, policy_of
from agents.alerts.policy import TOLD_DIRECTLY
from citeflow.settings import SiteConfig
from streams.produce import produce

__all__ = ["hand_in", "last_word", "spool_of"]

logger = logging.getLogger(__name__)

LAST_WORD_SECONDS = 8.0
MAX_FILES, MAX_BYTES = 100, 100_000


def spool_of(site_config: SiteConfig) -> Path:
    """The directory in which last words wait."""
    named = site_config.get_str("alert_spool_dir").strip()
    return Path(named) if named else platformdirs.user_state_path("citeflow") / "spool"


async def last_word(site_config: SiteConfig, error: Exception, *, seconds: float) -> None:
    """Keep and post that the worker ends because of `error`. Never raises; takes that long.

    Where no channel is set up the log is the channel, and nothing is kept.
    """
    now, host = datetime.now(UTC), socket.gethostname()
    finding = schemas.AuditFinding(
        event_id=str(uuid.uuid4()),
        timestamp=now,
        source=f"worker.{host}",
        kind="worker_ended",
        severity="critical",
        title="A worker ended on a fault",
        body=f"on {host}: {error}"[:2000],
        dedup_key=f"worker_ended:{host}",
    )
    path = spool_of(site_config) / f"{finding.event_id}.json"
    try:
        async with asyncio.timeout(min(seconds, LAST_WORD_SECONDS)), Delivery(site_config) as out:
            channels = Channels(out)
            names = channels.wanted(finding, policy_of(finding.kind, site_config))
            if not names:
                return
            _keep(path, finding)
            left = await channels.send(names, finding_message(finding))
    except TimeoutError:
        logger.error("the end of the worker could not be told in time; the next one tells it")
        return
    if not left:
        _keep(path, msgspec.structs.replace(finding, extra={TOLD_DIRECTLY: True}))


def _keep(path: Path, finding: schemas.AuditFinding) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            file.write(schemas.encode(finding))
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as exc:
        logger.error("the end of the worker could not be kept: %s", exc)


async def hand_in(site_config: SiteConfig, broker: str) -> None:
    """Put what earlier workers left on `audit.findings`. Raises what producing raises.

    Only where a channel is set up: others do not keep anything.
    """
    async with Delivery(site_config) as delivery:
        if not any(channel.configured for channel in delivery.channels.values()):
            return
    kept = await asyncio.to_thread(_read, spool_of(site_config))
    if kept:
        records = [(finding.key, schemas.encode(finding)) for finding in kept.values()]
        await produce(broker, "audit.findings", records)
        for path in kept:
            path.unlink(missing_ok=True)


def _read(spool: Path) -> Mapping[Path, schemas.AuditFinding]:
    found = {}
    try:
        for path in sorted(spool.glob("*.json"))[:MAX_FILES]:
            try:
                with path.open("rb") as file:
                    found[path] = schemas.decode(file.read(MAX_BYTES), schemas.AuditFinding)
            except schemas.EventError as exc:
                logger.error("%s is no finding: %s", path, exc)
    except OSError as exc:
        logger.error("what earlier workers left could not be read: %s", exc)
    return found
