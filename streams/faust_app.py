"""A Faust application as citeflow uses it, and how an agent is attached to one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any

import faust
from faust.types import StreamT

import schemas
from streams.config import StreamConfig
from streams.kafka_transport import CarefulTransport, stop_flow_until_sought
from streams.publisher import Publisher
from streams.shell import AgentShell
from streams.topics import TOPICS

__all__ = ["App", "app_id", "attach", "new_app"]

# Events that Faust reads ahead per channel. Hits of twenty results are some 100 kB.
STREAM_BUFFER = 128
# How long what a broker said of its topics is believed; the clients' 5 minutes are longer than a
# request may wait.
METADATA_SECONDS = 30


def app_id(config: StreamConfig, name: str) -> str:
    """The name of a consumer group."""
    return f"{config.app_prefix}-{name}"


class App(faust.App):
    """A Faust application that opens and closes the resources its agents use."""

    fetch_wait: float | None = None
    resources: Sequence[AbstractAsyncContextManager[object]] = ()
    companions: Sequence[faust.App] = ()
    gauges: Mapping[str, tuple[str, Callable[[], float]]] = MappingProxyType({})
    """What it measures of itself: by name, what that is and how much it is now."""

    def _new_transport(self) -> CarefulTransport:
        return CarefulTransport(self.conf.broker_consumer, self)

    async def on_first_start(self) -> None:
        """Create no data directories: tables live in memory and on the broker."""

    async def on_start(self) -> None:
        """Open the resources before the agents start."""
        for resource in self.resources:
            await self.add_async_context(resource)
        await super().on_start()
        for companion in self.companions:
            companion.finalize()
            await self.add_runtime_dependency(companion)


def new_app(name: str, config: StreamConfig) -> App:
    """An application without agents: one consumer group."""
    brokers = ";".join(f"kafka://{host.strip()}" for host in config.broker.split(","))
    app = App(
        app_id(config, name),
        broker=brokers,
        processing_guarantee="at_least_once",
        autodiscover=False,
        web_enabled=False,
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        table_standby_replicas=0,
        topic_disable_leader=True,
        topic_allow_declare=False,
        topic_partitions=config.partitions,
        topic_replication_factor=config.replication,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=METADATA_SECONDS * 1000,
        producer_metadata_max_age_ms=METADATA_SECONDS * 1000,
        broker_session_timeout=config.session_timeout,
        broker_heartbeat_interval=config.heartbeat_interval,
        broker_rebalance_timeout=config.rebalance_timeout,
        broker_commit_interval=config.commit_interval,
        producer_acks=-1,
        producer_linger=config.producer_linger,
        producer_max_batch_size=config.max_batch_size,
        producer_request_timeout=config.publish_timeout,
        stream_buffer_maxsize=STREAM_BUFFER,
        # Faust would otherwise take over the process's logging and streams.
        worker_redirect_stdouts=False,
    )
    app.fetch_wait = config.fetch_wait
    stop_flow_until_sought(app)
    return app


def attach(
    app: faust.App,
    publisher: Publisher,
    agent: Any,
    topics: Sequence[str],
    *,
    limit: int,
    deadline: float,
    record_of: Callable[[str], type[Any]] | None = None,
    in_lanes: bool = False,
) -> None:
    """Let `agent` handle the records of `topics` in the shell; `limit` at once.

    `deadline` bounds one try of one record, in seconds; `record_of` maps topics to record types,
    by default those of the topic table; `in_lanes` is the shell's.
    """
    shell: AgentShell[Any] = AgentShell(
        agent,
        record_of=record_of or _record_of,
        publisher=publisher,
        crash=app.crash,
        limit=limit,
        deadline=deadline,
        in_lanes=in_lanes,
    )
    channel = app.topic(
        *topics,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
    )

    async def run(stream: StreamT[Any]) -> None:
        await shell.run(stream)

    app.agent(channel, name=f"{app.conf.id}.{agent.stage}")(run)


def _record_of(topic: str) -> type[schemas.Record]:
    record = TOPICS[topic].record
    assert record is not None
    return record
