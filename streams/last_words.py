"""What a worker says when it ends on a fault: kept in a file and posted, as Kafka may be the fault.

The next worker puts it on `audit.findings`, where it belongs, and it is posted then if it was not.
Findings of events need no such way: an event whose findings could not be sent is not acknowledged,
and comes back with them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import platformdirs

import schemas
from agents.alerts import Channels, Delivery, finding_message, policy_of
from agents.alerts.policy import TOLD_DIRECTLY
from citeflow.findings import Severity
from citeflow.settings import SiteConfig
from streams.produce import produce

__all__ = ["hand_in", "say_last_words"]

logger = logging.getLogger(__name__)

SECONDS = 8.0
# A supervisor starts a worker again and again while the broker is away: not each of them is told.
QUIET_SECONDS = 900.0
STAMP = "last-told"
MAX_FILES, MAX_BYTES = 100, 100_000


async def say_last_words(site_config: SiteConfig, reason: str) -> None:
    """Keep and post that the worker ended, and why, to all channels for what is critical.

    Posted once in a quarter of an hour on this machine, within eight seconds. Where no channel is
    set up the log is the channel, and nothing is kept. Raises nothing but `CancelledError`.
    """
    spool = _spool(site_config)
    finding = _finding(reason)
    try:
        async with asyncio.timeout(SECONDS), Delivery(site_config) as delivery:
            channels = Channels(delivery)
            names = channels.wanted(finding, policy_of(finding.kind, site_config))
            if not names:
                return
            if _said_lately(spool):
                _keep(spool, finding, told=True)
                return
            _keep(spool, finding, told=False)
            left = await channels.send(names, finding_message(finding))
    except TimeoutError:
        logger.error("the end of the worker could not be told in time; the next one tells it")
        return
    if not left:
        _keep(spool, finding, told=True)
        _stamp(spool)


async def hand_in(site_config: SiteConfig, broker: str) -> None:
    """Put what earlier workers left on `audit.findings`. Raises what producing raises.

    Only where a channel is set up: others keep nothing.
    """
    async with Delivery(site_config) as delivery:
        if not any(channel.configured for channel in delivery.channels.values()):
            return
    kept = await asyncio.to_thread(_read, _spool(site_config))
    if kept:
        records = [(finding.key, schemas.encode(finding)) for finding in kept.values()]
        await produce(broker, "audit.findings", records)
        for path in kept:
            path.unlink(missing_ok=True)


def _spool(site_config: SiteConfig) -> Path:
    named = site_config.get_str("alert_spool_dir").strip()
    return Path(named) if named else platformdirs.user_state_path("citeflow") / "spool"


def _finding(reason: str) -> schemas.AuditFinding:
    now, host = datetime.now(UTC), socket.gethostname()
    return schemas.AuditFinding(
        event_id=schemas.event_id(f"{host} {os.getpid()}", "worker_ended", now.isoformat()),
        timestamp=now,
        source="worker",
        kind="worker_ended",
        severity=Severity.CRITICAL.value,
        title="A worker ended on a fault",
        body=f"on {host}: {reason}"[:2000],
        dedup_key=f"worker_ended:{host}",
    )


def _said_lately(spool: Path) -> bool:
    try:
        return time.time() - (spool / STAMP).stat().st_mtime < QUIET_SECONDS
    except OSError:
        return False


def _keep(spool: Path, finding: schemas.AuditFinding, *, told: bool) -> None:
    extra = {TOLD_DIRECTLY: True} if told else {}
    path = spool / f"{finding.event_id}.json"
    try:
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            file.write(schemas.encode(msgspec.structs.replace(finding, extra=extra)))
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as exc:
        logger.error("the end of the worker could not be kept: %s", exc)


def _stamp(spool: Path) -> None:
    try:
        (spool / STAMP).touch()
    except OSError as exc:
        logger.error("that the end of the worker was told could not be noted: %s", exc)


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
