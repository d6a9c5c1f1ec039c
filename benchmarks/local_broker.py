"""A broker of a benchmark's own, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.kafka_node import KafkaNode
from streams.embedded import EmbeddedBroker

__all__ = ["BROKERS", "local_broker"]

BROKERS = ("embedded", "kafka")


@contextlib.asynccontextmanager
async def local_broker(kind: str) -> AsyncIterator[str]:
    """`host:port` of a new broker of one of the `BROKERS`, without topics."""
    if kind == "embedded":
        broker = EmbeddedBroker()
        broker.start()
        try:
            await broker.wait_ready()
            yield broker.address
        finally:
            broker.stop()
        return
    home = Path(tempfile.mkdtemp(prefix="citeflow-kafka-"))
    node = KafkaNode(home)
    try:
        await asyncio.to_thread(node.start)
        yield node.address
    finally:
        await asyncio.to_thread(node.stop)
        shutil.rmtree(home)
