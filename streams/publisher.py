"""Sending a record and knowing that the broker has it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from faust.exceptions import FaustError

import schemas
from streams.topics import topic_of

if TYPE_CHECKING:
    import faust

__all__ = ["PublishError", "Publisher", "RecordTooLargeError"]

# More waiting senders only wake each other up: the client wakes all of them when one has gone.
AT_ONCE = 32

Headers = Sequence[tuple[str, bytes]]


class PublishError(RuntimeError):
    """The broker did not take a record; the worker ends and its events come back."""


class RecordTooLargeError(ValueError):
    """The record is larger than brokers accept; trying again does not help."""


class Publisher:
    """Sends records through a Faust application's producer, each awaited to its acknowledgement.

    A send that Faust does not await is only logged when it fails, and the event it came from is
    acknowledged all the same.
    """

    def __init__(self, app: faust.App) -> None:
        self._app = app
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def send(self, record: schemas.Record, headers: Headers = ()) -> None:
        """Send one record to its topic. Raises `PublishError` or `RecordTooLargeError`."""
        await self.send_raw(topic_of(record), record.key, schemas.encode(record), headers=headers)

    async def send_raw(
        self,
        topic: str,
        key: bytes,
        value: bytes | None,
        *,
        partition: int | None = None,
        headers: Headers = (),
    ) -> int:
        """Send bytes; None as value is a tombstone. Returns the offset. Raises as `send` does."""
        producer = await self._app.maybe_start_producer()
        try:
            async with self._turns:
                sent = await producer.send_and_wait(
                    topic, key, value, partition, None, list(headers) or None
                )
        except (KafkaError, FaustError, OSError) as exc:
            if isinstance(exc.__cause__ or exc, MessageSizeTooLargeError):
                raise RecordTooLargeError(f"{topic}: {len(value or b'')} bytes") from exc
            raise PublishError(f"{topic}: {type(exc).__name__}: {exc}") from exc
        return int(sent.offset)
