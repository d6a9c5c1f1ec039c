"""The Faust applications, each a consumer group of its own: search, fetch, join, alert.

At a rebalance a group stands still until all its events in flight are done: in groups of their
own, a slow page delays neither a search nor the join nor an alert, and a search that waits for
reading to catch up does not keep what it waits for from going on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import faust

import schemas
from agents.alerts import AlertState, Channels, Delivery
from agents.backlog import Backlog
from agents.fetch import FetchAgent
from agents.search import SearchAgent
from agents.slots import Slots
from citeflow.fetch import PageFetcher
from citeflow.search import SearchChain
from citeflow.settings import SiteConfig
from streams.alert import (
    ALERT_RECORDS,
    AlertCodec,
    AlertStage,
    partition_of_alert,
    send_alerts_due,
)
from streams.audit_log import AuditLogStage
from streams.config import StreamConfig
from streams.database import LazyPool
from streams.digest import Digest
from streams.faust_app import App, app_id, attach, new_app
from streams.join import JoinState
from streams.join_codec import JoinCodec
from streams.publisher import Publisher
from streams.score import JOIN_RECORDS, ScoreStage
from streams.state_table import StateTable, key_partitioner
from streams.topics import ALERT_TABLE, JOIN_TABLE, TOPICS, TopicSpec, changelog_spec

__all__ = ["APP_NAMES", "EVERY_APP", "build_apps", "build_combined_app", "required_topics"]

logger = logging.getLogger(__name__)

APP_NAMES = ("search", "fetch", "join", "alert")
"""What a worker runs when nothing is said."""
EVERY_APP = (*APP_NAMES, "audit")
"""With the copy of findings in PostgreSQL, for a process of its own."""

# Requests taken for each search that runs: the others wait for a slot or are parked.
SEARCHES_TAKEN = 4
# One try of one event, in seconds. A search has a deadline of its own, and is made a second time
# after a wait when every backend refused: both and the wait end with the budget. Before that a
# request may wait for reading to catch up, and while those taken with it are searched. Pages of one
# request wait for slots and end with the request's deadline.
SEARCH_BUDGET = 80.0
SEARCH_PATIENCE = 60.0
SEARCH_DEADLINE = SEARCH_PATIENCE + SEARCHES_TAKEN * SEARCH_BUDGET + 10.0
FETCH_PATIENCE = 30.0
FETCH_DEADLINE = FETCH_PATIENCE + 90.0
SCORE_DEADLINE = 60.0
# Each record waits for the broker two or three times; one partition must not wait for another's.
JOINED_AT_ONCE = 16
# Three channels, each tried three times with the pauses it asks for.
ALERT_DEADLINE = 150.0
# The database may be restarted, or be away for a while.
AUDIT_DEADLINE = 300.0
# Between two looks at whether memory has all that a changelog has, in seconds.
UNREAD_INTERVAL = 10.0
# Between two looks at whether the daily digest is due; whoever has this partition sends it.
DIGEST_INTERVAL = 60.0
DIGEST_PARTITION = 0


def required_topics(config: StreamConfig) -> list[TopicSpec]:
    """Every topic that must exist before a worker starts, the tables' changelogs included."""
    return [
        *TOPICS.values(),
        changelog_spec(app_id(config, "join"), JOIN_TABLE),
        changelog_spec(app_id(config, "alert"), ALERT_TABLE),
    ]


def build_apps(names: Sequence[str], config: StreamConfig, site_config: SiteConfig) -> list[App]:
    """Those of `EVERY_APP` that are named, not yet started, for one process."""
    return _build(names, config, site_config)


def build_combined_app(config: StreamConfig, site_config: SiteConfig) -> faust.App:
    """All applications as one service: the others start and stop with the first."""
    app, *app.companions = _build(APP_NAMES, config, site_config)
    return app


def _build(names: Sequence[str], config: StreamConfig, site_config: SiteConfig) -> list[App]:
    unread, unscored = Backlog(utc_now), Backlog(utc_now)
    build: dict[str, Callable[[], App]] = {
        "search": lambda: _search(config, site_config, unread),
        "fetch": lambda: _fetch(config, site_config, unread, unscored),
        "join": lambda: _join(config, site_config, unscored),
        "alert": lambda: _alert(config, site_config),
        "audit": lambda: _audit(config),
    }
    return [build[name]() for name in names]


def utc_now() -> datetime:
    """The clock of the stream."""
    return datetime.now(UTC)


def _search(config: StreamConfig, site_config: SiteConfig, unread: Backlog) -> App:
    app = new_app("search", config)
    searcher = SearchChain(site_config)
    posts = LazyPool(config.database_url) if config.database_url else None
    app.resources = [searcher, posts] if posts is not None else [searcher]
    searches = site_config.get_int("stream_max_searches_in_flight")
    agent = SearchAgent(
        searcher=searcher,
        site_config=site_config,
        clock=utc_now,
        posts=posts,
        slots=Slots(lambda: site_config.get_int("stream_max_searches_in_flight")),
        backlog=unread,
        patience=SEARCH_PATIENCE,
        budget=SEARCH_BUDGET,
    )
    # More are taken than are searched: some are parked, and one with a deadline must be known of.
    attach(
        app,
        Publisher(app),
        agent,
        ["topics.requested"],
        limit=searches * SEARCHES_TAKEN,
        deadline=SEARCH_DEADLINE,
    )
    return app


def _fetch(
    config: StreamConfig, site_config: SiteConfig, unread: Backlog, unscored: Backlog
) -> App:
    app = new_app("fetch", config)
    fetcher = PageFetcher(site_config, cache_setting="stream_page_cache_seconds")
    app.resources = [fetcher]
    fetches = site_config.get_int("stream_max_fetches_in_flight")
    agent = FetchAgent(
        fetcher=fetcher,
        site_config=site_config,
        clock=utc_now,
        slots=Slots(lambda: site_config.get_int("stream_max_fetches_in_flight")),
        backlog=unread,
        unscored=unscored,
        patience=FETCH_PATIENCE,
    )
    attach(app, Publisher(app), agent, ["search.hits"], limit=fetches, deadline=FETCH_DEADLINE)
    return app


def _join(config: StreamConfig, site_config: SiteConfig, unscored: Backlog) -> App:
    app = new_app("join", config)
    publisher = Publisher(app)
    table = StateTable(
        app,
        publisher,
        JoinCodec(),
        name=JOIN_TABLE,
        follows="search.hits",
        partition_of=key_partitioner(config.partitions),
        broker=config.broker,
        partitions=config.partitions,
    )
    remembered = "Requests that wait for pages, or were answered lately."
    app.gauges = {"requests_remembered": (remembered, lambda: len(table))}
    score = ScoreStage(table=table, site_config=site_config, clock=utc_now, backlog=unscored)
    attach(
        app,
        publisher,
        score,
        list(JOIN_RECORDS),
        limit=JOINED_AT_ONCE,
        in_lanes=True,  # a request's records are all in partitions with one number
        deadline=SCORE_DEADLINE,
        record_of=JOIN_RECORDS.__getitem__,
    )
    _keep_time(app, config, table, lambda: _send_due(table, publisher, utc_now()))
    return app


async def _send_due(table: StateTable[JoinState], publisher: Publisher, now: datetime) -> None:
    due = table.pop_due(now)
    if due:
        await asyncio.gather(
            *(
                publisher.send(schemas.JoinDue(request_id=key.decode(), due_at=at))
                for key, at in due
            )
        )


def _alert(config: StreamConfig, site_config: SiteConfig) -> App:
    app = new_app("alert", config)
    publisher = Publisher(app)
    delivery = Delivery(site_config)
    app.resources = [delivery]
    table: StateTable[AlertState] = StateTable(
        app,
        publisher,
        AlertCodec(),
        name=ALERT_TABLE,
        follows="audit.findings",
        partition_of=partition_of_alert,
        broker=config.broker,
        partitions=config.partitions,
    )
    stage = AlertStage(
        table=table, channels=Channels(delivery), site_config=site_config, clock=utc_now
    )
    app.gauges = {"alerts_parked": ("Alerts that no channel has taken yet.", stage.parked)}
    attach(
        app,
        publisher,
        stage,
        list(ALERT_RECORDS),
        limit=1,
        deadline=ALERT_DEADLINE,
        record_of=ALERT_RECORDS.__getitem__,
    )
    _keep_time(app, config, table, lambda: send_alerts_due(table, publisher, utc_now()))
    digest = Digest(
        broker=config.broker,
        changelog=changelog_spec(app.conf.id, ALERT_TABLE).name,
        publisher=publisher,
        site_config=site_config,
        ours=lambda: table.owns(DIGEST_PARTITION),
    )
    _every(app, DIGEST_INTERVAL, "digest", lambda: digest.look(utc_now()))
    return app


def _audit(config: StreamConfig) -> App:
    app = new_app("audit", config)
    pool = LazyPool(config.database_url)
    app.resources = [pool]
    attach(
        app,
        Publisher(app),
        AuditLogStage(pool),
        ["audit.findings"],
        limit=1,
        deadline=AUDIT_DEADLINE,
    )
    return app


def _keep_time(
    app: faust.App,
    config: StreamConfig,
    table: StateTable[Any],
    send_due: Callable[[], Awaitable[None]],
) -> None:
    """Timers for a table. They may not write it: they only tell its agent, which decides."""
    _every(app, config.due_interval, "due", send_due)
    _every(app, UNREAD_INTERVAL, "unread", table.look_for_unread)


def _every(app: faust.App, seconds: float, name: str, work: Callable[[], Awaitable[None]]) -> None:
    async def tick() -> None:
        # An exception in a timer would end the worker for what the next tick may well do.
        try:
            await work()
        except Exception:
            logger.exception("%s: %s failed, trying again", app.conf.id, name)

    app.timer(seconds, name=f"{app.conf.id}.{name}")(tick)
