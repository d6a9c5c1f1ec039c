"""Dead letters: what is on `events.rejected`, and sending it again once the fault is mended."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from datetime import datetime

import schemas
from agents import Inbound
from agents.request import REQUEST_ID_HEADER, request_id_of
from streams.log_reader import read_log
from streams.produce import produce
from streams.rejection import REDRIVE_HEADER

__all__ = ["Redrive", "RejectedFilter", "dead_letters", "redrive"]


@dataclass(frozen=True, slots=True)
class RejectedFilter:
    """Which dead letters; empty fields select all."""

    event_ids: Collection[str] = ()
    stage: str | None = None
    since: datetime | None = None

    def __contains__(self, letter: schemas.EventRejected) -> bool:
        return (
            (not self.event_ids or letter.event_id in self.event_ids)
            and self.stage in (None, letter.stage)
            and (self.since is None or letter.timestamp >= self.since)
        )


@dataclass(frozen=True, slots=True)
class Redrive:
    """What became of one dead letter: sent again, or why not."""

    letter: schemas.EventRejected
    refusal: str | None = None


async def dead_letters(
    broker: str, selected: RejectedFilter
) -> AsyncGenerator[schemas.EventRejected, None]:
    """The selected dead letters, each `event_id` once, in the order of their partitions."""
    seen: set[str] = set()
    async for record in read_log(broker, "events.rejected"):
        if not record.value:
            continue
        letter = schemas.decode(record.value, schemas.EventRejected)
        if letter.event_id not in seen and letter in selected:
            seen.add(letter.event_id)
            yield letter


async def redrive(broker: str, selected: RejectedFilter, *, dry_run: bool = False) -> list[Redrive]:
    """Send the selected events to their topics again, as they were.

    Each keeps its identity: a request without an id of its own keeps the one of its first
    position, and one that is rejected again keeps its dead letter's id. So doing this twice
    answers no request twice. An event that was too large to be kept whole is not sent.
    """
    done = []
    async for letter in dead_letters(broker, selected):
        refusal = _refusal(letter)
        if refusal is None and not dry_run:
            await produce(
                broker,
                letter.topic,
                [(letter.record_key, letter.value)],
                headers=[_headers(letter)],
            )
        done.append(Redrive(letter, refusal))
    return done


def _refusal(letter: schemas.EventRejected) -> str | None:
    if len(letter.value) != letter.value_size:
        return f"only {len(letter.value)} of its {letter.value_size} bytes were kept"
    if hashlib.sha256(letter.value).hexdigest() != letter.value_sha256:
        return "the bytes kept are not those that were rejected"
    return None


def _headers(letter: schemas.EventRejected) -> list[tuple[str, bytes]]:
    # Whatever named the request at its first position names it at the next.
    origin = schemas.Origin(
        letter.topic,
        letter.partition,
        letter.offset,
        letter.timestamp,
        letter.record_key,
        letter.headers,
    )
    request_id = request_id_of(Inbound(schemas.TopicRequested(topic="unread"), origin))
    own = (REDRIVE_HEADER, REQUEST_ID_HEADER)
    return [
        *((name, value) for name, value in letter.headers if name not in own),
        (REDRIVE_HEADER, letter.event_id.encode()),
        (REQUEST_ID_HEADER, request_id.encode()),
    ]
