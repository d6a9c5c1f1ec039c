"""Requests survive the worker being killed."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

import pytest

import schemas
from streams.config import StreamConfig
from streams.produce import produce
from tests.support.line import gather, gather_until, web_settings, worker_process
from tests.support.webs import many_articles

REQUESTS = 200
KILLS = 5


@pytest.mark.timeout(300)
async def test_every_request_is_answered_once_though_the_worker_is_killed(
    line_config: StreamConfig,
) -> None:
    """200 requests, 5 SIGKILLs at random moments: 200 contexts, none missing, none twofold."""
    rng = random.Random(20261201)
    wanted = [f"request-{number:03}" for number in range(REQUESTS)]
    records = [(name.encode(), f'{{"topic": "harbour {name}"}}'.encode()) for name in wanted]

    def answered(found: list[schemas.ContextReady]) -> bool:
        return {context.request_id for context in found} >= set(wanted)

    async with many_articles(results=3, delay=0.05) as origin:
        settings = web_settings(origin)
        produced = asyncio.create_task(produce(line_config.broker, "topics.requested", records))
        for _ in range(KILLS):
            async with worker_process(line_config, settings) as worker:
                # Ready and at work: somewhere in a request, anywhere in the line.
                await asyncio.sleep(rng.uniform(0.05, 1.5))
                worker.kill()
        await produced
        async with worker_process(line_config, settings):
            await gather_until(line_config.broker, schemas.ContextReady, answered, patience=120)

    values: defaultdict[str, set[bytes]] = defaultdict(set)
    contexts = await gather(line_config.broker, schemas.ContextReady)
    for context in contexts:
        values[context.request_id].add(schemas.encode(context))
    assert sorted(values) == wanted
    assert {name for name, variants in values.items() if len(variants) != 1} == set()
    assert await gather(line_config.broker, schemas.EventRejected) == []
    # A page that got lost on its way would be missed until the deadline.
    assert {context.outcome for context in contexts} == {schemas.ContextOutcome.COMPLETE}
