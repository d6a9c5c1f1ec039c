"""Reading topics without joining a group: nothing is committed, nobody is rebalanced."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

import schemas
from streams.topics import TopicError

__all__ = ["contexts", "log_end", "partitions_of", "read_log"]


@contextlib.asynccontextmanager
async def _consumer(
    broker: str, topic: str, partition: int | None = None
) -> AsyncIterator[tuple[Any, list[TopicPartition]]]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    )
    try:
        await consumer.start()
        partitions = [
            TopicPartition(topic, number)
            for number in sorted(await partitions_of(consumer, topic))
            if partition in (None, number)
        ]
        consumer.assign(partitions)
        yield consumer, partitions
    finally:
        await consumer.stop()


async def partitions_of(consumer: Any, topic: str) -> set[int]:
    """The topic's partitions. Raises `TopicError` when there is no such topic."""
    # A topic that was created just now may not be in the first metadata.
    for _ in range(20):
        await consumer._client.force_metadata_update()
        found = consumer.partitions_for_topic(topic)
        if found:
            return set(found)
        await asyncio.sleep(0.1)
    raise TopicError(f"the broker has no topic {topic}; run `python -m streams topics create`")


async def log_end(broker: str, topic: str) -> dict[int, int]:
    """The offset that the next record of each partition will have."""
    async with _consumer(broker, topic) as (consumer, partitions):
        return {tp.partition: offset for tp, offset in (await _ends(consumer, partitions)).items()}


async def _ends(consumer: Any, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
    return ends


async def _offsets_at(
    consumer: Any, partitions: list[TopicPartition], moment: datetime
) -> dict[TopicPartition, int]:
    wanted = max(int(moment.timestamp() * 1000), 0)
    found = await consumer.offsets_for_times(dict.fromkeys(partitions, wanted))
    offsets = await _ends(consumer, partitions)
    for tp, at in found.items():
        # Where no record is as young, brokers answer with nothing, or with a negative time.
        if at is not None and at.timestamp >= 0:
            offsets[tp] = at.offset
    return offsets


async def read_log(
    broker: str,
    topic: str,
    *,
    start: dict[int, int] | None = None,
    partition: int | None = None,
    end: dict[int, int] | None = None,
    since: datetime | None = None,
    follow: bool = False,
) -> AsyncGenerator[Any, None]:
    """The topic's records from offsets `start` (default: the beginning), in partition order.

    `partition` reads only that one; `since` begins at records that were put on the topic at that
    time. Ends before the offsets `end`, by default those that were the
    end when reading began, unless `follow`.
    """
    async with _consumer(broker, topic, partition) as (consumer, assigned):
        for tp in assigned:
            consumer.seek(tp, (start or {}).get(tp.partition, 0))
        if since is not None:
            for tp, offset in (await _offsets_at(consumer, assigned, since)).items():
                consumer.seek(tp, offset)
        elif start is None:
            await consumer.seek_to_beginning(*assigned)
        left = {} if follow else await _ends(consumer, assigned)
        for tp in left:
            left[tp] = min(left[tp], (end or {}).get(tp.partition, left[tp]))
        open_partitions = {tp for tp, end in left.items() if await consumer.position(tp) < end}
        while follow or open_partitions:
            batch = await consumer.getmany(timeout_ms=200)
            for tp, records in batch.items():
                for record in records:
                    if follow or record.offset < left[tp]:
                        yield record
            for tp in list(open_partitions):
                if await consumer.position(tp) >= left[tp]:
                    open_partitions.discard(tp)


async def contexts(
    broker: str,
    *,
    request_id: str | None = None,
    start: dict[int, int] | None = None,
    follow: bool = False,
) -> AsyncGenerator[schemas.ContextReady, None]:
    """The contexts on `context.ready`, each `event_id` once, optionally of one request."""
    seen: set[str] = set()
    async for record in read_log(broker, "context.ready", start=start, follow=follow):
        if not record.value:
            continue
        context = schemas.decode(record.value, schemas.ContextReady)
        if context.event_id in seen or request_id not in (None, context.request_id):
            continue
        seen.add(context.event_id)
        yield context
