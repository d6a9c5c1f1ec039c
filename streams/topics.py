"""The topic table, and the code that creates and checks it.

Topics are created explicitly before a worker starts. Broker auto-creation would race with it and
end in different partition counts, which a join cannot survive: Faust then drops every event.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

import schemas

__all__ = [
    "ALERT_TABLE",
    "JOIN_TABLE",
    "TOPICS",
    "TopicError",
    "TopicSpec",
    "changelog_spec",
    "check_topics",
    "ensure_topics",
    "topic_of",
]

logger = logging.getLogger(__name__)

DAY_MS = 24 * 60 * 60 * 1000
JOIN_TABLE = "requests"
ALERT_TABLE = "alerts"

VISIBLE_TRIES, VISIBLE_DELAY = 50, 0.2

_TOPIC_ALREADY_EXISTS = 36  # Kafka protocol error code


class TopicError(RuntimeError):
    """The broker's topics do not fit; correct them (see the message) before starting a worker."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic: its name, the record it holds, and how long records are kept."""

    name: str
    record: type[schemas.Record] | None
    retention_days: int | None
    cleanup: str = "delete"
    config: Mapping[str, str] = field(default_factory=dict)

    def broker_config(self) -> dict[str, str]:
        """The topic's configuration as the broker takes it."""
        config = {"cleanup.policy": self.cleanup, **self.config}
        if self.retention_days is not None:
            config["retention.ms"] = str(self.retention_days * DAY_MS)
        return config


TOPICS: Mapping[str, TopicSpec] = {
    spec.name: spec
    for spec in (
        TopicSpec("topics.requested", schemas.TopicRequested, 7),
        TopicSpec("search.hits", schemas.SearchHits, 30),
        TopicSpec("pages.fetched", schemas.PageFetched, 30),
        TopicSpec("context.ready", schemas.ContextReady, 30, "compact,delete"),
        # Contexts made again from the log, under other settings perhaps: see streams.replay.
        TopicSpec("context.replayed", schemas.ContextReady, 30),
        TopicSpec("audit.findings", schemas.AuditFinding, 90),
        TopicSpec("join.due", schemas.JoinDue, 1),
        TopicSpec("alerts.due", schemas.AlertDue, 1),
        TopicSpec("events.rejected", schemas.EventRejected, 90),
    )
}

_BY_RECORD = {spec.record: spec.name for spec in reversed(list(TOPICS.values())) if spec.record}


def topic_of(record: schemas.Record) -> str:
    """The name of the topic that agents send records of this type to."""
    return _BY_RECORD[type(record)]


def changelog_spec(app_id: str, table: str = JOIN_TABLE) -> TopicSpec:
    """The changelog of a table in the application `app_id`.

    Compacted and never deleted by age: recovery stalls when a changelog's start has moved.
    """
    return TopicSpec(f"{app_id}-{table}-changelog", None, None, "compact")


async def ensure_topics(
    bootstrap: str, specs: Sequence[TopicSpec], *, partitions: int, replication: int = 1
) -> list[str]:
    """Create the topics that are missing and check those that exist.

    Returns the names created. Raises `TopicError` when the broker refuses one, or when a topic
    has another number of partitions than `partitions`.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await admin.start()
        response = await admin.create_topics(
            [
                NewTopic(
                    name=spec.name,
                    num_partitions=partitions,
                    replication_factor=replication,
                    topic_configs=spec.broker_config(),
                )
                for spec in specs
            ]
        )
        created = []
        # The admin client reports errors per topic and raises nothing.
        for name, code, *rest in response.topic_errors:
            if code == 0:
                created.append(name)
            elif code != _TOPIC_ALREADY_EXISTS:
                raise TopicError(f"topic {name} could not be created: error {code} {rest}")
        await _check(admin, specs, partitions)
    finally:
        await admin.close()
    if created:
        logger.info("created topics: %s", ", ".join(sorted(created)))
    return created


async def check_topics(bootstrap: str, specs: Sequence[TopicSpec]) -> dict[str, int | None]:
    """The number of partitions of each topic, None for one that does not exist."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await admin.start()
        return await _counts(admin, specs)
    finally:
        await admin.close()


async def _counts(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> dict[str, int | None]:
    # Listing first: describing a missing topic may create it where auto-creation is on.
    existing = set(await admin.list_topics())
    counts: dict[str, int | None] = {spec.name: None for spec in specs}
    present = [spec.name for spec in specs if spec.name in existing]
    if present:
        for description in await admin.describe_topics(present):
            counts[description["topic"]] = len(description["partitions"])
    return counts


async def _check(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec], partitions: int) -> None:
    counts = await _counts(admin, specs)
    # A broker acknowledges a new topic before all its metadata tells of it.
    for _ in range(VISIBLE_TRIES):
        if None not in counts.values():
            break
        await asyncio.sleep(VISIBLE_DELAY)
        counts = await _counts(admin, specs)
    wrong = {name: count for name, count in counts.items() if count != partitions}
    if wrong:
        listed = ", ".join(f"{name} has {count}" for name, count in sorted(wrong.items()))
        raise TopicError(
            f"every topic needs {partitions} partitions, but {listed}; recreate it with "
            f"{partitions} partitions, or set CITEFLOW_PARTITIONS to the number they share"
        )
