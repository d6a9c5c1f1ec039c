"""Putting a request on the topic, and waiting for its answer."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaProducer

import schemas
from agents import Inbound
from agents.request import resolve_request
from streams.log_reader import contexts, log_end

__all__ = ["produce", "request_and_wait", "request_context"]


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


async def request_context(broker: str, request: schemas.TopicRequested) -> str:
    """Put a request on `topics.requested`; returns its request id, made up if it has none.

    Raises `EventError` for a request that the search agent would reject.
    """
    request_id = request.request_id or str(uuid.uuid4())
    request.request_id = request_id
    checked = schemas.decode(schemas.encode(request), schemas.TopicRequested)
    resolve_request(Inbound(checked, schemas.Origin("topics.requested", 0, 0)))
    await produce(broker, "topics.requested", [(request.key, schemas.encode(request))])
    return request_id


async def request_and_wait(
    broker: str,
    request: schemas.TopicRequested,
    *,
    timeout: float,
    on_sent: Callable[[str], None] = lambda request_id: None,
) -> schemas.ContextReady:
    """Put a request on the topic and wait for its context.

    `on_sent` is told the request id. Raises `TimeoutError` after `timeout` seconds; the request
    is then still being worked on.
    """
    start = await log_end(broker, "context.ready")
    request_id = await request_context(broker, request)
    on_sent(request_id)
    async with asyncio.timeout(timeout):
        async for context in contexts(broker, request_id=request_id, start=start, follow=True):
            return context
    raise TimeoutError(f"no context for {request_id}")
