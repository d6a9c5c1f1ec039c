"""The join's states, kept in a Faust table: memory here, a changelog on the broker.

Writes go to the changelog first, awaited, and then to memory. Faust's own table assignment sends
its changelog record without waiting for it, so a state could be acted on that no restart finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

from aiokafka.partitioner import DefaultPartitioner

from streams.due import DueIndex
from streams.join import JoinState, decode_state, encode_state
from streams.publisher import Publisher
from streams.topics import JOIN_TABLE, changelog_spec

if TYPE_CHECKING:
    import faust

__all__ = ["RequestTable"]


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
        return decode_state(data) if data is not None else None

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
        owned = self._owned()
        data: Mapping[bytes, bytes] = dict(self._data)
        self._due.clear()
        for number, (key, value) in enumerate(data.items()):
            if self._partition(key) in owned:
                self._due.set(key, decode_state(value).due_at)
            else:
                self._data.pop(key, None)
            if number % 1000 == 999:
                await asyncio.sleep(0)  # large tables must not stall heartbeats of the loop
