"""The whole line in one process, on a real broker, with a loopback web."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator

import schemas
from citeflow.research import ResearchService
from citeflow.settings import SiteConfig
from streams.client import Client
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.produce import produce
from streams.runner import WorkerRunner
from tests.support.broker import BACKEND
from tests.support.line import gather, gather_until, running_line, web_settings
from tests.support.metrics import samples
from tests.support.webs import hanging_pages, refusing_engine

TOPIC = "FastAPI streaming responses"


async def test_stream_and_library_give_equal_bytes(line_config: StreamConfig) -> None:
    """The same topic, web and settings: the corpus on Kafka equals `build_context`'s."""
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        for topic in (TOPIC, "Redis caching", "nothing matches xyzzy"):
            context = await Client(line_config.broker).ask(topic, timeout=60)
            config = SiteConfig(web_settings(web.origin), environ={})
            report = await ResearchService(site_config=config).research(topic)
            assert context.corpus.encode() == report.corpus.encode()
            for record, source, excerpts in zip(
                context.sources, report.sources, report.excerpts, strict=True
            ):
                assert (record.published_on, record.date_confidence) == (
                    source.published_on,
                    source.date_confidence,
                )
                assert [(e.start, e.end, e.text_sha256) for e in record.excerpts] == [
                    (e.start, e.end, e.text_sha256) for e in excerpts
                ]


async def test_demo_corpus_filters_what_it_should(line_config: StreamConfig) -> None:
    """The failed page never shows, the near-duplicate once, and each drop has its reason."""
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        context = await Client(line_config.broker).ask(TOPIC, max_results=6, timeout=60)
    assert context.outcome == schemas.ContextOutcome.COMPLETE
    reasons = {drop.reason: drop.url for drop in context.dropped}
    assert {"unfetchable", "duplicate", "thin_snippet"} <= reasons.keys()
    for url in reasons.values():
        assert url not in context.corpus
    assert len(context.sources) >= 2
    for source in context.sources:
        assert source.url in context.corpus


async def test_only_a_topic_is_enough(line_config: StreamConfig) -> None:
    """No key, no request id: one context, with the id derived from the record's position."""
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        await produce(line_config.broker, "topics.requested", [(None, b'{"topic": "Docker"}')])
        (context,) = await gather_until(
            line_config.broker, schemas.ContextReady, lambda found: len(found) == 1
        )
    assert context.request_id in {
        schemas.derived_request_id("topics.requested", partition, 0)
        for partition in range(line_config.partitions)
    }


async def test_bad_records_are_rejected_once_and_the_line_goes_on(
    line_config: StreamConfig,
) -> None:
    """Each bad record: one rejection and one finding. A record with extra fields is a good one."""
    bad = {
        b"not-json": b"this is not JSON",
        b"no-topic": b'{"category": "technology"}',
        b"long-topic": b'{"topic": "' + b"x" * 10_000 + b'"}',
        b"large": b'{"topic": "' + b"x" * 2_000_000 + b'"}',
        b"wrong-type": b'{"topic": ["Redis"], "max_results": "many"}',
        b"bad-option": b'{"topic": "Redis", "options": {"no_such_setting": 1}}',
    }
    if BACKEND != "embedded":
        del bad[b"large"]  # Apache Kafka itself refuses a record of this size
    good = {
        b"extra": b'{"topic": "Redis caching", "colour": "blue", "nested": {"a": [1]}}',
        b"after": b'{"topic": "Redis caching"}',
    }
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        await produce(
            line_config.broker,
            "topics.requested",
            [*bad.items(), *good.items()],
            max_request_size=3_000_000,
        )
        contexts = await gather_until(
            line_config.broker, schemas.ContextReady, lambda found: len(found) == len(good)
        )
        await gather_until(
            line_config.broker, schemas.EventRejected, lambda found: len(found) >= len(bad)
        )
        await gather_until(
            line_config.broker,
            schemas.AuditFinding,
            lambda found: sum(f.kind == "event_rejected" for f in found) >= len(bad),
        )
    assert {context.key for context in contexts} == good.keys()
    rejected = await gather(line_config.broker, schemas.EventRejected)
    assert sorted(record.key for record in rejected) == sorted(bad)
    assert {record.key: record.value_size for record in rejected} == {
        key: len(value) for key, value in bad.items()
    }


async def test_no_result_is_empty_and_refused_is_blocked(line_config: StreamConfig) -> None:
    """An honest nothing and a refusing engine have different outcomes, with status and reason."""
    broker = line_config.broker
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        empty = await Client(broker).ask("xyzzy plugh", timeout=60)
    assert (empty.outcome, empty.search_status) == (schemas.ContextOutcome.EMPTY, "empty")
    assert empty.reasons == ("no_search_results",)

    async with (
        refusing_engine(status=429) as origin,
        running_line(line_config, {**web_settings(origin), "stream_park_seconds": "0.1"}),
    ):
        blocked = await Client(broker).ask("Redis caching", timeout=60)
    assert (blocked.outcome, blocked.search_status) == (
        schemas.ContextOutcome.BLOCKED,
        "rate_limited",
    )
    assert blocked.reasons == ("search_rate_limited",)
    assert blocked.note


async def test_a_deadline_in_the_request_is_kept(line_config: StreamConfig) -> None:
    """A page that hangs does not delay the context past the request's own deadline."""
    async with hanging_pages() as origin:
        settings = {**web_settings(origin), "web_research_fetch_timeout_seconds": "60"}
        async with running_line(line_config, settings):
            deadline = datetime.now(UTC) + timedelta(seconds=4)
            context = await Client(line_config.broker).ask(
                "anything", deadline=deadline, timeout=30
            )
    assert context.outcome == schemas.ContextOutcome.DEGRADED
    assert context.timings.deadline_at <= deadline


async def test_a_broker_that_knows_no_topics_yet(
    line_config: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after its start a broker may say so: the groups get their partitions all the same."""
    look_up, told = GroupCoordinator._lookup_assignor, set[GroupCoordinator]()

    def know_nothing_at_first(self: GroupCoordinator, name: str) -> object:
        if self not in told:
            told.add(self)
            self._cluster._partitions.clear()
        return look_up(self, name)

    monkeypatch.setattr(GroupCoordinator, "_lookup_assignor", know_nothing_at_first)
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        context = await Client(line_config.broker).ask(TOPIC, timeout=60)
    assert context.outcome is schemas.ContextOutcome.COMPLETE


def test_metrics_can_be_asked_for_before_the_start(line_config: StreamConfig) -> None:
    """Counters and the process are told; the gauges of a consumer come when there is one."""
    runner = WorkerRunner(line_config, SiteConfig({}, environ={}))
    assert samples(runner.metrics())["process_resident_memory_bytes",] > 0
