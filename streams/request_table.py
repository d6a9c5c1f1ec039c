"""The join's states, kept in a Faust table: memory here, a changelog on the broker.

Writes go to the changelog first, awaited, and then to memory. Faust's own table assignment sends
its changelog record without waiting for it, so a state could be acted on that no restart finds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

import msgspec
from aiokafka.partitioner import DefaultPartitioner

from streams.due import DueIndex
from streams.join import JoinState, decode_state, encode_state
from streams.publisher import Publisher
from streams.topics import JOIN_TABLE, changelog_spec

if TYPE_CHECKING:
    import faust

__all__ = ["RequestTable"]

logger = logging.getLogger(__name__)


class RequestTable:
    """Request states by record key, and when each is due."""

    def __init__(self, app: faust.App, publisher: Publisher, *, partitions: int) -> None:
        self._app = app
        self._publisher = publisher
        self._all_partitions = list(range(partitions))
        self._partitioner = DefaultPartitioner()
        self._changelog = changelog_spec(app.conf.id).name
        self._due = DueIndex()
        self._table = app.Table(
            JOIN_TABLE,
            partitions=partitions,
            key_type=bytes,
            value_type=bytes,
        )
        self._table.on_recover(self._on_recover)

    def __len__(self) -> int:
        return len(self._data)

    def get(self, key: bytes) -> JoinState | None:
        """The state of a request, None when nothing is known of it."""
        data = self._data.get(key)
        return _decoded(key, data) if data is not None else None

    def belongs(self, key: bytes, partition: int) -> bool:
        """Whether records with this key stand in this partition.

        One that does not would keep a second state of its request, with a changelog of its own.
        """
        return self._partition(key) == partition

    async def put(self, key: bytes, state: JoinState | None, *, partition: int) -> None:
        """Store a state durably; None forgets the request. Raises as `Publisher.send` does."""
        value = encode_state(state) if state is not None else None
        await self._publisher.send_raw(self._changelog, key, value, partition=partition)
        if state is None or value is None:
            self._data.pop(key, None)
            self._due.discard(key)
        else:
            self._data[key] = value
            self._due.set(key, state.due_at)

    def pop_due(self, now: datetime) -> list[tuple[bytes, datetime]]:
        """The keys of this worker's partitions that are due, with the time each was due.

        Nothing while partitions are moving or states are being recovered.
        """
        if self._app.rebalancing or not self._app.tables.actives_ready:
            return []
        owned = self._owned()
        return [(key, at) for key, at in self._due.pop(now) if self._partition(key) in owned]

    @property
    def _data(self) -> MutableMapping[bytes, bytes]:
        # Beneath the table, so that nothing but `put` writes a changelog record.
        return cast("MutableMapping[bytes, bytes]", self._table.data)

    def _owned(self) -> set[int]:
        return {tp.partition for tp in self._app.consumer.assignment() if tp.topic == "search.hits"}

    def _partition(self, key: bytes) -> int:
        return int(self._partitioner(key, self._all_partitions, self._all_partitions))

    async def _on_recover(self) -> None:
        # The memory store keeps the keys of partitions that went to other workers, and their
        # states here grow stale: a sweep would act on them.
        self._due.clear()
        for number, key in enumerate(list(self._data)):
            if self._partition(key) not in self._owned():
                self._data.pop(key, None)
            elif (state := self.get(key)) is None:
                self._data.pop(key, None)  # damaged: an event of the request starts it anew
            else:
                self._due.set(key, state.due_at)
            if number % 1000 == 999:
                # Large tables must not stall the loop. Partitions may move meanwhile: which are
                # owned is asked for each key.
                await asyncio.sleep(0)


def _decoded(key: bytes, data: bytes) -> JoinState | None:
    try:
        return decode_state(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        logger.error("the state of request %r is damaged and left out", key)
        return None
