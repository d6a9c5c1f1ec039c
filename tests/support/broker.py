"""A Kafka-protocol broker for the tests: embedded by default, Apache Kafka in a container if asked.

With CITEFLOW_TEST_BACKEND=containers one Apache Kafka container serves the session and its topics
are removed between tests; otherwise every test has an embedded broker of its own.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from streams.config import StreamConfig
from streams.embedded import EmbeddedBroker, embedded_profile
from streams.runner import wait_for_topics

__all__ = ["broker_address", "containers", "line_config", "stream_config"]

_CONTAINER_IMAGE = "apache/kafka:3.9.1"  # as in docker-compose.yml
PARTITIONS = 4


def containers() -> bool:
    """Whether the tests were asked to run against containers."""
    return os.environ.get("CITEFLOW_TEST_BACKEND") == "containers"


@pytest.fixture(scope="session")
def _container_address() -> Iterator[str]:
    from testcontainers.kafka import KafkaContainer

    with KafkaContainer(_CONTAINER_IMAGE).with_kraft() as container:
        yield container.get_bootstrap_server()


@pytest.fixture
async def broker_address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """`host:port` of a broker without topics."""
    if containers():
        address: str = request.getfixturevalue("_container_address")
        yield address
        await _remove_topics(address)
        return
    broker = EmbeddedBroker()
    broker.start()
    try:
        await broker.wait_ready()
        yield broker.address
    finally:
        broker.stop()


@pytest.fixture
def stream_config(broker_address: str) -> StreamConfig:
    """A configuration for the broker, with consumer groups of its own; no topics yet."""
    config = StreamConfig(app_prefix=f"test-{uuid.uuid4().hex[:8]}")
    if containers():
        return replace(
            config,
            broker=broker_address,
            partitions=PARTITIONS,
            session_timeout=6.0,
            heartbeat_interval=1.0,
            due_interval=0.5,
            stop_timeout=5.0,
        )
    return embedded_profile(config, broker_address, partitions=PARTITIONS)


@pytest.fixture
async def line_config(stream_config: StreamConfig) -> StreamConfig:
    """As `stream_config`, with all topics created."""
    await wait_for_topics(stream_config)
    return stream_config


async def _remove_topics(address: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        for _ in range(100):
            names = [name for name in await admin.list_topics() if not name.startswith("__")]
            if not names:
                return
            await admin.delete_topics(names)
            await asyncio.sleep(0.2)
        raise RuntimeError(f"topics could not be removed: {names}")
    finally:
        await admin.close()
