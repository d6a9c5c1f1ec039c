"""audit.findings -> PostgreSQL: a copy for those who look at findings with SQL."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import asyncpg
import orjson

from agents.base import Emit, Inbound
from schemas import AuditFinding
from streams.database import LazyPool
from streams.publisher import PublishError

__all__ = ["AuditLogStage"]

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 2.0

_INSERT = """
INSERT INTO audit_log (event_id, event_type, source, severity, details, timestamp)
VALUES ($1, 'finding', $2, $3, $4::jsonb, $5)
ON CONFLICT (event_id) DO NOTHING
"""


class AuditLogStage:
    """Stores each finding once, in a group of its own: the database delays no alert.

    While the database is away a finding waits unacknowledged, and those behind it on Kafka. When
    it stays away the worker ends, which is why this stage is not among those that run by default:
    it is for a process of its own.
    """

    stage = "audit"

    def __init__(self, pool: LazyPool) -> None:
        self._pool = pool

    def request_id(self, event: Inbound[AuditFinding]) -> str:
        """The request that the finding is about, or the finding itself."""
        return event.record.request_id or event.record.event_id

    async def handle(self, event: Inbound[AuditFinding], emit: Emit) -> None:
        """Store it, waiting for the database within the deadline of a try."""
        finding = event.record
        row = (
            _storable(finding.event_id),
            _storable(finding.source),
            _storable(finding.severity),
            _details(finding),
            finding.timestamp,
        )
        said = False
        while True:
            try:
                await self._pool.execute(_INSERT, *row)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as exc:
                if isinstance(exc, asyncpg.DataError):
                    raise  # this finding cannot be stored, however often it is tried
                if not said:
                    said = True
                    logger.error("findings cannot be copied: %s; waiting", type(exc).__name__)
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return

    async def give_up(self, event: Inbound[AuditFinding], error: Exception, emit: Emit) -> None:
        """Leave out what the table cannot hold; for anything else the worker ends."""
        if isinstance(error, asyncpg.DataError):
            logger.error("finding %s cannot be stored", event.record.event_id)
            return
        raise PublishError(f"audit_log: {type(error).__name__}") from error


def _details(finding: AuditFinding) -> str:
    details: dict[str, Any] = {
        "schema_version": 1,
        "kind": finding.kind,
        "title": finding.title,
        "body": finding.body,
        "dedup_key": finding.dedup_key,
        "request_id": finding.request_id,
        "extra": finding.extra,
    }
    return orjson.dumps(_storable(details), default=str).decode()


def _storable(value: Any) -> Any:
    """Without NUL, which neither text nor jsonb can hold."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return value
