"""An agent's states, kept in a Faust table: memory here, a changelog on the broker.

Writes go to the changelog first, awaited, and then to memory. Faust's own table assignment sends
its changelog record without waiting for it, so a state could be acted on that no restart finds.
What other workers wrote meanwhile is merged, here and at a recovery: see `streams.changelog`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import faust
from aiokafka.errors import KafkaError
from aiokafka.partitioner import DefaultPartitioner

from streams.changelog import Changelog, StateCodec
from streams.due import DueIndex
from streams.log_reader import log_end, read_log
from streams.publisher import Publisher, PublishError
from streams.topics import TopicError, changelog_spec

if TYPE_CHECKING:
    from faust.types import EventT

__all__ = ["StateTable", "key_partitioner"]

logger = logging.getLogger(__name__)

S = TypeVar("S")

CATCH_UP_SECONDS = 20.0
UNREAD_GRACE = 1.0


def key_partitioner(partitions: int) -> Callable[[bytes], int]:
    """The partition that producers put a record with this key in."""
    everyone, partitioner = list(range(partitions)), DefaultPartitioner()
    return lambda key: int(partitioner(key, everyone, everyone))


class _Table(faust.Table[bytes, bytes]):
    """A table whose recovery merges."""

    changelog: Changelog

    def apply_changelog_batch(self, batch: Iterable[EventT[Any]]) -> None:
        for event in batch:
            message: Any = event.message
            self.changelog.apply(message.partition, message.offset, message.key, message.value)


class StateTable(Generic[S]):
    """States by key, and when each is due.

    `name` is the table's, `broker` its address. Whose keys this worker has is told by its
    partitions of the topic `follows`, and by `partition_of` a key.
    """

    def __init__(
        self,
        app: faust.App,
        publisher: Publisher,
        codec: StateCodec[S],
        *,
        name: str,
        follows: str,
        partition_of: Callable[[bytes], int],
        broker: str,
        partitions: int,
    ) -> None:
        self._app = app
        self._publisher = publisher
        self._codec = codec
        self._follows = follows
        self._partition_of = partition_of
        self._broker = broker
        self._all_partitions = range(partitions)
        self._topic = changelog_spec(app.conf.id, name).name
        self._due = DueIndex()
        table: Any = _Table(
            app,
            name=name,
            partitions=partitions,
            key_type=bytes,
            value_type=bytes,
            beacon=app.tables.beacon,
        )
        # Beneath the table, so that nothing but `put` writes a changelog record.
        self._changelog = table.changelog = Changelog(table.data, codec.merge)
        table.on_recover(self._on_recover)
        app.tables.add(table)

    def __len__(self) -> int:
        return len(self._changelog.data)

    def states(self) -> Iterator[S]:
        """Those of this worker's partitions that can be read."""
        for key in list(self._changelog.data):
            if (state := self.get(key)) is not None:
                yield state

    def get(self, key: bytes) -> S | None:
        """The state under a key, None when there is none or it is damaged."""
        data = self._changelog.data.get(key)
        return self._codec.decode(key, data) if data is not None else None

    def belongs(self, key: bytes, partition: int) -> bool:
        """Whether records with this key stand in this partition.

        One that does not would keep a second state of its request, with a changelog of its own.
        """
        return self._partition_of(key) == partition

    async def put(self, key: bytes, state: S | None) -> S | None:
        """Store a state durably; None forgets the key. Raises as `Publisher.send` does.

        Returns the state that stands: `state` itself, or what it was merged to when another worker
        had written to the partition meanwhile.
        """
        partition = self._partition_of(key)
        value = self._codec.encode(state) if state is not None else None
        offset = await self._publisher.send_raw(self._topic, key, value, partition=partition)
        if self._changelog.is_next(partition, offset):
            self._changelog.append(partition, offset, key, value)
            self._note_due(key, state)
            return state
        await self._catch_up(partition, offset)
        self._changelog.apply(partition, offset, key, value)
        stands = self.get(key)
        self._note_due(key, stands)
        return stands

    async def look_for_unread(self) -> None:
        """Read what the log holds of this worker's partitions and memory does not.

        Faust's recovery has been seen to leave a partition out when rebalances follow closely upon
        one another. Events of its requests bring it back, see `put`; but for one that waits for
        its deadline there may be none. Raises `PublishError` when the log cannot be read.
        """
        try:
            ends = await log_end(self._broker, self._topic)
        except (KafkaError, OSError, TopicError) as exc:
            raise PublishError(f"{self._topic}: cannot read where it ends") from exc
        await asyncio.sleep(UNREAD_GRACE)  # records of our own are on their way to be known
        if self._app.rebalancing or not self._app.tables.actives_ready:
            return
        for partition in self._owned():
            await self._catch_up(partition, ends.get(partition, 0))

    async def _catch_up(self, partition: int, offset: int) -> None:
        start = self._changelog.unread_before(partition, offset)
        if start is None:
            return
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                async for record in read_log(
                    self._broker,
                    self._topic,
                    start={partition: start},
                    partition=partition,
                    end={partition: offset},
                ):
                    self._changelog.apply(partition, record.offset, record.key, record.value)
                    self._note_due(record.key, self.get(record.key))
        except (KafkaError, OSError, TopicError) as exc:
            raise PublishError(f"{self._topic}: cannot read what was written meanwhile") from exc
        logger.warning("read %s-%d from %d to %d", self._topic, partition, start, offset)

    def _note_due(self, key: bytes, state: S | None) -> None:
        if state is None:
            self._due.discard(key)
        else:
            self._due.set(key, self._codec.due_at(state))

    def pop_due(self, now: datetime) -> list[tuple[bytes, datetime]]:
        """The keys of this worker's partitions that are due, with the time each was due.

        Nothing while partitions are moving or states are being recovered.
        """
        if self._app.rebalancing or not self._app.tables.actives_ready:
            return []
        owned = self._owned()
        return [(key, at) for key, at in self._due.pop(now) if self._partition_of(key) in owned]

    def owns(self, partition: int) -> bool:
        """Whether this worker has the partition, and its states."""
        ready = not self._app.rebalancing and self._app.tables.actives_ready
        return ready and partition in self._owned()

    def _owned(self) -> set[int]:
        return {tp.partition for tp in self._app.consumer.assignment() if tp.topic == self._follows}

    async def _on_recover(self) -> None:
        # The memory store keeps the keys of partitions that went to other workers, and their
        # states here grow stale: a sweep would act on them.
        self._due.clear()
        self._forget_others()
        for number, key in enumerate(list(self._changelog.data)):
            if self._partition_of(key) not in self._owned():
                self._changelog.data.pop(key, None)
            elif (state := self.get(key)) is None:
                # Damaged: an event of the request starts it anew.
                self._changelog.data.pop(key, None)
            else:
                self._due.set(key, self._codec.due_at(state))
            if number % 1000 == 999:
                # Large tables must not stall the loop. Partitions may move meanwhile: which are
                # owned is asked for each key.
                await asyncio.sleep(0)
        self._forget_others()

    def _forget_others(self) -> None:
        for partition in set(self._all_partitions) - self._owned():
            self._changelog.forget(partition)
