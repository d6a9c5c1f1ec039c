"""The three Faust applications, each a consumer group of its own.

`ingest` searches and reads pages, `join` scores, `alert` reports findings: a slow page never
delays the join or an alert at a rebalance, where a group stands still until all its events in
flight are done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import faust
from faust.types import StreamT

import schemas
from agents.alert import AlertAgent
from agents.fetch import FetchAgent
from agents.search import SearchAgent
from citeflow.settings import SiteConfig
from streams.config import StreamConfig
from streams.kafka_transport import CarefulTransport, stop_flow_until_sought
from streams.publisher import Publisher
from streams.request_table import RequestTable
from streams.resources import Resources, utc_now
from streams.score import JOIN_RECORDS, ScoreStage
from streams.shell import AgentShell
from streams.topics import TOPICS, TopicSpec, changelog_spec

__all__ = ["APP_NAMES", "build_app", "build_combined_app", "required_topics"]

logger = logging.getLogger(__name__)

APP_NAMES = ("ingest", "join", "alert")

# Requests taken for each search that runs: the others wait for a slot or are parked.
SEARCHES_TAKEN = 4
# One try of one event, in seconds. A search has a deadline of its own, and is made a second time
# after a wait when every backend refused: both and the wait end with the budget. Before that a
# request may wait while those taken with it are searched. Pages of one request wait for slots and
# end with the request's deadline.
SEARCH_BUDGET = 80.0
SEARCH_DEADLINE = SEARCHES_TAKEN * SEARCH_BUDGET + 10.0
FETCH_DEADLINE = 90.0
SCORE_DEADLINE = 60.0
ALERT_DEADLINE = 15.0
# Events that Faust reads ahead per channel. Hits of twenty results are some 100 kB.
STREAM_BUFFER = 128


def required_topics(config: StreamConfig) -> list[TopicSpec]:
    """Every topic that must exist before a worker starts, the join's changelog included."""
    return [*TOPICS.values(), changelog_spec(_app_id(config, "join"))]


def build_app(name: str, config: StreamConfig, site_config: SiteConfig) -> faust.App:
    """One of the applications named in `APP_NAMES`, not yet started."""
    return {"ingest": _ingest, "join": _join, "alert": _alert}[name](config, site_config)


def build_combined_app(config: StreamConfig, site_config: SiteConfig) -> faust.App:
    """All three applications as one service: `join` and `alert` start and stop with `ingest`."""
    app = _ingest(config, site_config)
    app.companions = [_join(config, site_config), _alert(config, site_config)]
    return app


def _app_id(config: StreamConfig, name: str) -> str:
    return f"{config.app_prefix}-{name}"


class _App(faust.App):
    """A Faust application that opens and closes the resources its agents use."""

    fetch_wait: float | None = None
    resources: Resources | None = None
    companions: Sequence[faust.App] = ()

    def _new_transport(self) -> CarefulTransport:
        return CarefulTransport(self.conf.broker_consumer, self)

    async def on_first_start(self) -> None:
        """Create no data directories: tables live in memory and on the broker."""

    async def on_start(self) -> None:
        """Open the resources before the agents start."""
        if self.resources is not None:
            await self.add_async_context(self.resources)
        await super().on_start()
        for companion in self.companions:
            companion.finalize()
            await self.add_runtime_dependency(companion)


def _new_app(name: str, config: StreamConfig) -> _App:
    brokers = ";".join(f"kafka://{host.strip()}" for host in config.broker.split(","))
    app = _App(
        _app_id(config, name),
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


def _attach(
    app: faust.App,
    publisher: Publisher,
    agent: Any,
    topics: Sequence[str],
    *,
    limit: int,
    deadline: float,
    record_of: Callable[[str], type[Any]] | None = None,
) -> None:
    shell: AgentShell[Any] = AgentShell(
        agent,
        record_of=record_of or _record_of,
        publisher=publisher,
        crash=app.crash,
        limit=limit,
        deadline=deadline,
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


def _ingest(config: StreamConfig, site_config: SiteConfig) -> _App:
    app = _new_app("ingest", config)
    app.resources = Resources(site_config, database_url=config.database_url)
    publisher = Publisher(app)
    searches = site_config.get_int("stream_max_searches_in_flight")
    fetches = site_config.get_int("stream_max_fetches_in_flight")
    search = SearchAgent(
        searcher=app.resources.searcher,
        site_config=site_config,
        clock=utc_now,
        posts=app.resources.posts,
        slots=asyncio.Semaphore(searches),
        budget=SEARCH_BUDGET,
    )
    fetch = FetchAgent(
        fetcher=app.resources.fetcher,
        site_config=site_config,
        clock=utc_now,
        slots=asyncio.Semaphore(fetches),
    )
    # More are taken than are searched: some are parked, and one with a deadline must be known of.
    _attach(
        app,
        publisher,
        search,
        ["topics.requested"],
        limit=searches * SEARCHES_TAKEN,
        deadline=SEARCH_DEADLINE,
    )
    _attach(app, publisher, fetch, ["search.hits"], limit=fetches, deadline=FETCH_DEADLINE)
    return app


def _join(config: StreamConfig, site_config: SiteConfig) -> faust.App:
    app = _new_app("join", config)
    publisher = Publisher(app)
    table = RequestTable(app, publisher, partitions=config.partitions)
    score = ScoreStage(table=table, site_config=site_config, clock=utc_now)
    _attach(
        app,
        publisher,
        score,
        list(JOIN_RECORDS),
        limit=1,
        deadline=SCORE_DEADLINE,
        record_of=JOIN_RECORDS.__getitem__,
    )

    async def send_due() -> None:
        # A timer may not write tables: it only tells the agent, which decides.
        # An exception here would end the worker for what the next tick may well do.
        try:
            await _send_due(table, publisher, utc_now())
        except Exception:
            logger.exception("could not send what is due; trying again")

    app.timer(config.due_interval, name=f"{app.conf.id}.due")(send_due)
    return app


async def _send_due(table: RequestTable, publisher: Publisher, now: datetime) -> None:
    due = table.pop_due(now)
    if due:
        await asyncio.gather(
            *(
                publisher.send(schemas.JoinDue(request_id=key.decode(), due_at=at))
                for key, at in due
            )
        )


def _alert(config: StreamConfig, site_config: SiteConfig) -> faust.App:
    app = _new_app("alert", config)
    publisher = Publisher(app)
    _attach(app, publisher, AlertAgent(), ["audit.findings"], limit=1, deadline=ALERT_DEADLINE)
    return app
