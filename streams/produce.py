"""Sending records, each known to be with the broker."""

from __future__ import annotations

from collections.abc import Sequence

from aiokafka import AIOKafkaProducer

__all__ = ["produce"]


async def produce(
    broker: str,
    topic: str,
    records: Sequence[tuple[bytes | None, bytes]],
    *,
    headers: Sequence[Sequence[tuple[str, bytes]]] | None = None,
    max_request_size: int = 1_000_000,
) -> None:
    """Send records, each acknowledged by the broker before the next.

    `headers` are those of each record, by its place.
    """
    producer = AIOKafkaProducer(
        bootstrap_servers=broker,
        acks="all",
        # One record per batch: see streams.embedded on what larger ones do to that broker.
        max_batch_size=1,
        max_request_size=max_request_size,
    )
    try:
        await producer.start()
        for number, (key, value) in enumerate(records):
            own = list(headers[number]) if headers is not None else None
            await producer.send_and_wait(topic, value, key=key, headers=own)
    finally:
        await producer.stop()
