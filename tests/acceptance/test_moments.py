"""A worker killed while it recovers, while partitions are taken from it, while it stops."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import defaultdict

import pytest

import schemas
from streams.config import StreamConfig
from streams.produce import produce
from tests.support.line import gather, gather_until, web_settings, worker_process
from tests.support.webs import many_articles

MORTAL = (sys.executable, "-m", "tests.support.mortal_worker")
ENOUGH_TO_RECOVER = 60


@pytest.mark.timeout(300)
async def test_the_promise_holds_at_the_worst_moments(
    line_config: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other on the same requests: each of these workers dies, none is lost."""
    wanted = [f"request-{number:03}" for number in range(120)]
    records = [(name.encode(), f'{{"topic": "harbour {name}"}}'.encode()) for name in wanted]

    async with many_articles(results=3, delay=0.1) as origin:
        settings = web_settings(origin)
        await produce(line_config.broker, "topics.requested", records)
        async with worker_process(line_config, settings) as worker:
            await gather_until(
                line_config.broker,
                schemas.PageFetched,
                lambda found: len(found) >= ENOUGH_TO_RECOVER,
            )
            worker.kill()

        monkeypatch.setenv("MORTAL_MOMENT", "recovering")
        with pytest.raises(RuntimeError, match="ended with -9"):
            async with worker_process(line_config, settings, command=MORTAL):
                pass

        monkeypatch.setenv("MORTAL_MOMENT", "stopping")
        async with worker_process(line_config, settings, command=MORTAL) as worker:
            worker.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(worker.wait(), 30) == -signal.SIGKILL

        monkeypatch.setenv("MORTAL_MOMENT", "revoked")
        async with (
            worker_process(line_config, settings, command=MORTAL) as worker,
            # The other joins the groups, and has its share when this one is dead.
            worker_process(line_config, settings),
        ):
            assert await asyncio.wait_for(worker.wait(), 30) == -signal.SIGKILL
            await gather_until(
                line_config.broker,
                schemas.ContextReady,
                lambda found: {context.request_id for context in found} >= set(wanted),
                patience=120,
            )

    values: defaultdict[str, set[bytes]] = defaultdict(set)
    for context in await gather(line_config.broker, schemas.ContextReady):
        values[context.request_id].add(schemas.encode(context))
    assert sorted(values) == wanted
    assert {name for name, variants in values.items() if len(variants) != 1} == set()
    assert await gather(line_config.broker, schemas.EventRejected) == []
