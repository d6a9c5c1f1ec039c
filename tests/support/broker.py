"""A Kafka-protocol broker for the tests.

CITEFLOW_TEST_BACKEND says which: unset, every test has an embedded broker of its own; `kafka`, one
Apache Kafka node started by ops/kafka serves the session; `containers`, one in a container does. A
broker of the session has its topics removed after each test.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.kafka_node import KafkaNode
from streams.config import StreamConfig
from streams.embedded import EmbeddedBroker, embedded_profile
from streams.runner import wait_for_topics

__all__ = ["BACKEND", "broker_address", "line_config", "stream_config"]

BACKEND = os.environ.get("CITEFLOW_TEST_BACKEND") or "embedded"

_CONTAINER_IMAGE = "apache/kafka:3.9.1"  # as in docker-compose.yml
PARTITIONS = 4
# The least that Apache Kafka accepts out of the box is 6; the node of ops/kafka accepts 1.
SESSION_TIMEOUT = {"kafka": 2, "containers": 6}


@pytest.fixture(scope="session")
def _session_broker() -> Iterator[str]:
    with _container() if BACKEND == "containers" else _node() as address:
        yield address


@contextlib.contextmanager
def _container() -> Iterator[str]:
    from testcontainers.kafka import KafkaContainer

    with KafkaContainer(_CONTAINER_IMAGE).with_kraft() as container:
        yield container.get_bootstrap_server()


@contextlib.contextmanager
def _node() -> Iterator[str]:
    home = Path(tempfile.mkdtemp(prefix="citeflow-kafka-"))
    node = KafkaNode(home)
    try:
        node.start()
        yield node.address
    finally:
        node.stop()
        shutil.rmtree(home)


@pytest.fixture
async def broker_address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """`host:port` of a broker without topics."""
    if BACKEND != "embedded":
        address: str = request.getfixturevalue("_session_broker")
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
    config = StreamConfig(app_prefix=f"test-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
    if BACKEND != "embedded":
        return replace(
            config,
            broker=broker_address,
            session_timeout=SESSION_TIMEOUT[BACKEND],
            heartbeat_interval=SESSION_TIMEOUT[BACKEND] / 10,
            due_interval=0.5,
            stop_timeout=5.0,
        )
    return embedded_profile(config, broker_address)


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
