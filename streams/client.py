"""A small client: ask for topics, and take the answers, each once.

    client = Client("localhost:9092")
    request_id = await client.request("FastAPI streaming")
    async for context in client.contexts():
        print(context.request_id, context.outcome, context.corpus)

Any Kafka client can do the same; the README shows it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable
from typing import Any

import schemas
from agents import Inbound
from agents.request import resolve_request
from streams.log_reader import contexts, log_end
from streams.produce import produce

__all__ = ["Client"]


class Client:
    """Talks to the line through the broker at `broker` (`host:port[,host:port]`)."""

    def __init__(self, broker: str) -> None:
        self._broker = broker

    async def request(self, topic: str, **fields: Any) -> str:
        """Put a request on `topics.requested`; returns its request id, made up if not given.

        `fields` are those of `schemas.TopicRequested`. Raises `EventError` for a request that the
        line would reject.
        """
        request = schemas.TopicRequested(topic=topic, **fields)
        request.request_id = request.request_id or str(uuid.uuid4())
        checked = schemas.decode(schemas.encode(request), schemas.TopicRequested)
        resolve_request(Inbound(checked, schemas.Origin("topics.requested", 0, 0)))
        await produce(self._broker, "topics.requested", [(request.key, schemas.encode(request))])
        return request.request_id

    def contexts(
        self,
        *,
        request_id: str | None = None,
        start: dict[int, int] | None = None,
        follow: bool = True,
    ) -> AsyncGenerator[schemas.ContextReady, None]:
        """The contexts, each `event_id` once, from offsets `start` by partition (default: all).

        `request_id` selects those of one request; `follow` goes on with those to come.
        """
        return contexts(self._broker, request_id=request_id, start=start, follow=follow)

    async def ask(
        self,
        topic: str,
        *,
        timeout: float,
        on_sent: Callable[[str], None] = lambda request_id: None,
        **fields: Any,
    ) -> schemas.ContextReady:
        """Put a request on the topic and wait for its context.

        `on_sent` is told the request id. Raises `TimeoutError` after `timeout` seconds; the
        request is then still being worked on.
        """
        start = await log_end(self._broker, "context.ready")
        request_id = await self.request(topic, **fields)
        on_sent(request_id)
        async with asyncio.timeout(timeout):
            async for context in self.contexts(request_id=request_id, start=start):
                return context
        raise TimeoutError(f"no context for {request_id}")
