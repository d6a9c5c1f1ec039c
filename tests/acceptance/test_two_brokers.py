"""What the join makes of the same events does not depend on the broker that carries them."""

from __future__ import annotations

from dataclasses import replace

import schemas
from citeflow.settings import SiteConfig
from streams.client import Client
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.embedded import embedded_profile, running_broker
from streams.log_reader import read_log
from streams.produce import produce
from streams.runner import WorkerRunner, wait_for_topics
from tests.support.line import gather, gather_until, running_line, web_settings

TOPICS = ("FastAPI streaming responses", "Redis caching", "Kafka consumer groups", "nothing xyzzy")


async def test_the_same_events_give_the_same_bytes(line_config: StreamConfig) -> None:
    """Hits and pages carried over to an embedded broker, in another order, are judged the same."""
    first = line_config.broker
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        for topic in TOPICS:
            await Client(first).ask(topic, timeout=60)
    expected = {
        each.request_id: schemas.encode(each) for each in await gather(first, schemas.ContextReady)
    }
    assert len(expected) == len(TOPICS)

    async with running_broker() as broker:
        other = embedded_profile(
            replace(StreamConfig(), partitions=line_config.partitions), broker.address
        )
        await wait_for_topics(other)
        for topic in ("pages.fetched", "search.hits"):
            records = [(record.key, record.value) async for record in read_log(first, topic)]
            await produce(broker.address, topic, records)
        async with WorkerRunner(other, SiteConfig(environ={}), apps=["join"]):
            found = await gather_until(
                broker.address, schemas.ContextReady, lambda found: len(found) == len(TOPICS)
            )
    assert {each.request_id: schemas.encode(each) for each in found} == expected
