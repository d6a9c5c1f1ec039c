"""Events that cannot be handled, kept with all that is needed to send them again."""

from __future__ import annotations

import hashlib
import uuid

import schemas

__all__ = ["MAX_KEPT_BYTES", "REDRIVE_HEADER", "rejection", "rejection_finding"]

REDRIVE_HEADER = "citeflow-redrive-of"
"""On a record that is sent again: the `event_id` of its dead letter."""

# Base64 makes four bytes of three: 256 KiB stay under half of the 1 MB that brokers accept.
MAX_KEPT_BYTES = 256 * 1024
MAX_KEPT_KEY = 1024
MAX_KEPT_HEADERS = 32
MAX_KEPT_HEADER = 1024
MAX_ERROR = 1000


def rejection(
    origin: schemas.Origin, value: bytes | None, *, stage: str, error: str
) -> schemas.EventRejected:
    """The dead letter for an event. The same event rejected again has the same `event_id`.

    That holds for one that was sent again from here, too: it names its first dead letter.
    """
    data = value or b""
    first = origin.header(REDRIVE_HEADER)
    return schemas.EventRejected(
        event_id=_uuid(first) or schemas.event_id(origin.position, "rejected", stage),
        stage=stage,
        error=_printable(error)[:MAX_ERROR],
        topic=origin.topic,
        partition=origin.partition,
        offset=origin.offset,
        timestamp=origin.timestamp,
        value=data[:MAX_KEPT_BYTES],
        value_size=len(data),
        value_sha256=hashlib.sha256(data).hexdigest(),
        record_key=None if origin.key is None else origin.key[:MAX_KEPT_KEY],
        headers=tuple(
            (name[:MAX_KEPT_HEADER], content[:MAX_KEPT_HEADER])
            for name, content in origin.headers[:MAX_KEPT_HEADERS]
        ),
    )


def rejection_finding(rejected: schemas.EventRejected) -> schemas.AuditFinding:
    """What operators hear of a dead letter: where it was and what was wrong, not what it held."""
    return schemas.AuditFinding(
        event_id=schemas.event_id(rejected.event_id, "finding", "event_rejected"),
        timestamp=rejected.timestamp,
        source=f"{rejected.stage}_agent",
        kind="event_rejected",
        severity="warn",
        title=f"An event on {rejected.topic} was rejected",
        body=f"{rejected.topic}-{rejected.partition}-{rejected.offset}: {rejected.error}",
        dedup_key=f"event_rejected:{rejected.topic}",
        extra={
            "topic": rejected.topic,
            "partition": rejected.partition,
            "offset": rejected.offset,
            "size": rejected.value_size,
        },
    )


def _uuid(text: bytes | None) -> str | None:
    try:
        return str(uuid.UUID((text or b"").decode("ascii")))
    except ValueError:
        return None


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
