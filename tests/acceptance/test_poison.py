"""No record, wherever it stands and whatever it holds, stops the line."""

from __future__ import annotations

import json

import pytest
from aiokafka import AIOKafkaProducer

import schemas
from streams.client import Client
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.log_reader import read_log
from streams.produce import produce
from tests.support.broker import BACKEND
from tests.support.line import gather, gather_until, running_line, web_settings, worker_process
from tests.support.webs import serving

WAVE = "\U0001f30a"  # four bytes in UTF-8
# Milliseconds: the year 33658. Apache Kafka itself refuses a time far ahead.
FAR = 10**15 if BACKEND == "embedded" else None
HUGE = [("traceparent", b"x" * (1_500_000 if BACKEND == "embedded" else 600_000))]


def _hits(request_id: str, url: str) -> bytes:
    moment = "2026-01-01T00:00:00Z"
    return json.dumps(
        {
            "event_id": "e", "request_id": request_id, "topic": "t", "category": "c",
            "max_results": 5, "requested_at": moment, "searched_at": moment,
            "deadline_at": moment, "status": "ok", "pages_wanted": True,
            "hits": [{"rank": 0, "title": "t", "url": url, "snippet": "s"}],
        }
    ).encode()  # fmt: skip


async def test_poison_on_every_topic(line_config: StreamConfig) -> None:
    """Impossible timestamps, huge headers, huge hosts, garbage: the worker answers on."""
    broker = line_config.broker
    producer = AIOKafkaProducer(bootstrap_servers=broker, max_batch_size=1, max_request_size=3**14)
    async with DemoWeb() as web, worker_process(line_config, web_settings(web.origin)) as worker:
        await producer.start()
        try:
            for topic in ("topics.requested", "search.hits", "pages.fetched", "join.due"):
                await producer.send_and_wait(topic, b"{", key=b"k", timestamp_ms=FAR)
                await producer.send_and_wait(topic, b"{", key=b"k", headers=HUGE)
                await producer.send_and_wait(topic, None, key=b"k")
            finding = b'{"event_id":"e","timestamp":"2026-01-01T00:00:00Z","source":"s","kind":"k",'
            finding += b'"severity":"loud","title":"t","body":"%s\\u001b[31m","dedup_key":"d"}'
            await producer.send_and_wait("audit.findings", finding, timestamp_ms=FAR)
            await producer.send_and_wait("audit.findings", b"\xff")
            long_host = "http://" + "h" * 400_000 + ".example/"
            await producer.send_and_wait(
                "search.hits", _hits("long-host", long_host), key=b"long-host"
            )
        finally:
            await producer.stop()
        for _ in range(3):
            context = await Client(broker).ask("Redis caching", timeout=60)
            assert context.outcome == schemas.ContextOutcome.COMPLETE
        assert worker.returncode is None


async def test_a_record_in_a_foreign_partition_is_rejected(line_config: StreamConfig) -> None:
    """Hits copied into another partition give no second context, but a dead letter."""
    broker = line_config.broker
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        context = await Client(broker).ask("Redis caching", timeout=60)
        (record,) = [record async for record in read_log(broker, "search.hits")]
        producer = AIOKafkaProducer(bootstrap_servers=broker, max_batch_size=1)
        await producer.start()
        try:
            foreign = (record.partition + 1) % line_config.partitions
            await producer.send_and_wait(
                "search.hits", record.value, key=record.key, partition=foreign
            )
        finally:
            await producer.stop()
        (rejected,) = await gather_until(
            broker, schemas.EventRejected, lambda found: len(found) == 1
        )
    assert "does not belong in this partition" in rejected.error
    assert {schemas.encode(each) for each in await gather(broker, schemas.ContextReady)} == {
        schemas.encode(context)
    }


async def test_the_largest_request_there_can_be(line_config: StreamConfig) -> None:
    """Twenty results of the longest addresses, titles, snippets and pages: still one answer."""
    from aiohttp import web as aio

    def results(origin: str) -> list[dict[str, str]]:
        return [
            {
                "title": WAVE * 600,
                "url": f"{origin}/page/{number}?{WAVE * 1900}",
                "content": f"{number} " + f"{WAVE} wave " * 300,
            }
            for number in range(20)
        ]

    async def search(request: aio.Request) -> aio.StreamResponse:
        return aio.json_response({"results": results(f"http://{request.host}")})

    async def page(request: aio.Request) -> aio.StreamResponse:
        paragraph = f"<p>{request.path} {(WAVE + ' wave ') * 3000}</p>"
        text = f"<html><body><article><h1>Waves</h1>{paragraph}</article></body></html>"
        return aio.Response(text=text, content_type="text/html")

    async with serving({"/search": search, "/page/{n}": page}) as origin:
        settings = {**web_settings(origin), "web_research_max_content_chars": "7000"}
        async with running_line(line_config, settings):
            context = await Client(line_config.broker).ask("waves", max_results=20, timeout=90)
    assert context.counts.pages_arrived == 20
    assert "deadline_passed" not in context.reasons
    assert await gather(line_config.broker, schemas.EventRejected) == []


@pytest.mark.skipif(BACKEND != "embedded", reason="writes what only the embedded broker lets in")
async def test_a_damaged_state_does_not_stop_the_others(line_config: StreamConfig) -> None:
    """Junk on the changelog costs that request at most: all others are still answered."""
    from tests.support.webs import hanging_pages

    broker = line_config.broker
    changelog = f"{line_config.app_prefix}-join-requests-changelog"
    wanted = [f"r{number}" for number in range(8)]
    async with hanging_pages() as origin:
        settings = {
            **web_settings(origin),
            "research_join_timeout_seconds": "6",
            "web_research_fetch_timeout_seconds": "60",
        }
        async with worker_process(line_config, settings) as worker:
            await produce(
                broker,
                "topics.requested",
                [(name.encode(), b'{"topic": "anything"}') for name in wanted],
            )
            await gather_until(broker, schemas.SearchHits, lambda found: len(found) == len(wanted))
            worker.kill()
        await produce(broker, changelog, [(b"junk-%d" % n, b"\xff{") for n in range(8)])
        async with worker_process(line_config, settings):
            await gather_until(
                broker,
                schemas.ContextReady,
                lambda found: {context.request_id for context in found} >= set(wanted),
            )
