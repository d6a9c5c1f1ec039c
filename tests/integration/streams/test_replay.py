"""Replay reproduces what was answered, names what other settings change, and touches nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

import schemas
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.log_reader import log_end, read_log
from streams.produce import produce
from streams.replay import rejoin
from streams.stored import Selection, stored_requests
from tests.support.line import gather, gather_until, running_line, web_settings

TOPICS = ("FastAPI streaming responses", "Redis caching", "Kafka consumer groups", "xyzzy plugh")


@pytest.fixture
async def answered(line_config: StreamConfig) -> StreamConfig:
    """A broker whose log holds four answered requests; no worker runs any more."""
    records = [
        (name.encode(), json.dumps({"topic": topic, "max_results": 6}).encode())
        for name, topic in zip("abcd", TOPICS, strict=True)
    ]
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        await produce(line_config.broker, "topics.requested", [*records, (b"bad", b"{")])
        await gather_until(line_config.broker, schemas.ContextReady, lambda found: len(found) == 4)
        await gather_until(line_config.broker, schemas.EventRejected, lambda found: len(found) == 1)
    return line_config


def replay(config: StreamConfig, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streams", "replay", "--broker", config.broker, *arguments],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


async def committed(config: StreamConfig) -> dict[str, dict[object, object]]:
    admin = AIOKafkaAdminClient(bootstrap_servers=config.broker)
    await admin.start()
    try:
        topics = ("topics.requested", "search.hits", "pages.fetched")
        from aiokafka import TopicPartition

        places = [TopicPartition(t, n) for t in topics for n in range(config.partitions)]
        return {
            name: await admin.list_consumer_group_offsets(
                f"{config.app_prefix}-{name}", partitions=places
            )
            for name in ("search", "fetch", "join")
        }
    finally:
        await admin.close()


async def test_rejoin_reproduces_every_context(answered: StreamConfig) -> None:
    """With unchanged settings each context comes out byte for byte, without any web."""
    seen = 0
    async for stored in stored_requests(answered.broker, Selection()):
        assert stored.context is not None
        assert schemas.encode(rejoin(stored, {})) == schemas.encode(stored.context)
        seen += 1
    assert seen == 4


async def test_rejoin_command_is_empty_handed_and_leaves_no_trace(answered: StreamConfig) -> None:
    """The diff of a plain rejoin is empty; offsets, findings and context.ready stay as they are."""
    before = await committed(answered)
    findings = await log_end(answered.broker, "audit.findings")
    ready = await log_end(answered.broker, "context.ready")
    done = replay(answered, "--mode", "rejoin", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["requests"] == []
    assert (report["totals"]["requests"], report["totals"]["corpora_changed"]) == (4, 0)
    assert await committed(answered) == before
    assert await log_end(answered.broker, "audit.findings") == findings
    assert await log_end(answered.broker, "context.ready") == ready

    stored = {
        context.request_id: context
        for context in await gather(answered.broker, schemas.ContextReady)
    }
    replayed = [
        schemas.decode(record.value, schemas.ContextReady)
        async for record in read_log(answered.broker, "context.replayed")
    ]
    assert {context.request_id for context in replayed} == stored.keys()
    for context in replayed:
        assert context.corpus == stored[context.request_id].corpus
        assert context.event_id != stored[context.request_id].event_id


async def test_other_settings_are_named_in_the_diff(answered: StreamConfig) -> None:
    """The diff names exactly the requests whose order another weight changes."""
    key = "research_search_rank_weight"
    expected = set()
    async for stored in stored_requests(answered.broker, Selection()):
        assert stored.context is not None
        again = rejoin(stored, {key: "0"})
        if [s.url for s in again.sources] != [s.url for s in stored.context.sources]:
            expected.add(stored.hits.request_id)
    done = replay(answered, "--mode", "rejoin", "--set", f"{key}=0", "--json", "--dry-run")
    report = json.loads(done.stdout)
    found = {each["request_id"] for each in report["requests"] if each["order_changed"]}
    assert found == expected
    assert report["totals"]["orders_changed"] == len(expected)
    assert [r async for r in read_log(answered.broker, "context.replayed")] == []

    table = replay(
        answered, "--mode", "rejoin", "--set", "research_min_snippet_words=0",
        "--set", "research_min_snippet_length=0", "--diff", "--dry-run", "--query", "fastapi",
    )  # fmt: skip
    assert "    + http://127.0.0.1" in table.stdout
    assert "thin dropped           1 -> 0" in table.stdout
    for wrong in ("fetch_max_body_bytes=1", "research_min_snippet_words=x", "no_equals"):
        refused = replay(answered, "--mode", "rejoin", "--set", wrong)
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr


async def test_selection_and_resuming(answered: StreamConfig, tmp_path: Path) -> None:
    """Only what was asked for is replayed; an interrupted run goes on where it stopped."""

    def count(*arguments: str) -> int:
        done = replay(answered, "--mode", "rejoin", "--dry-run", *arguments)
        assert done.returncode == 0, done.stderr
        return int(done.stderr.splitlines()[-1].split()[0])

    assert count("--request-id", "a", "--request-id", "c") == 2
    assert count("--query", "REDIS") == 1
    assert count("--until", "1h") == 0
    assert count("--since", "1h") == 4
    assert sum(count("--partition", str(n)) for n in range(answered.partitions)) == 4
    assert count("--from-offset", "1000") == 0

    ends = await log_end(answered.broker, "search.hits")
    note = tmp_path / "note.json"
    note.write_text(
        json.dumps({"run_id": "r", "mode": "rejoin", "settings": {}, "next_offsets": ends})
    )
    assert count("--resume", str(note)) == 0
    assert not note.exists()


async def test_refeed_makes_the_valid_requests_again(answered: StreamConfig) -> None:
    """Each valid request once more, under a new id; the rejected one is not repeated."""
    done = replay(answered, "--mode", "refeed")
    assert done.returncode == 0, done.stderr
    requests = [
        json.loads(record.value)
        async for record in read_log(answered.broker, "topics.requested")
        if record.value != b"{"
    ]
    ids = [request.get("request_id") for request in requests]
    assert sorted(request["topic"] for request in requests) == sorted(TOPICS * 2)
    assert len({name for name in ids if name}) == 4
