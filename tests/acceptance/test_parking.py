"""Requests that every search backend refused: parked, searched once more, never lost."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

import schemas
from streams.client import Client
from streams.config import StreamConfig
from streams.produce import produce
from tests.support.engines import PlayedEngine, Reply, Request
from tests.support.line import gather, gather_until, running_line, web_settings, worker_process
from tests.support.webs import article

if TYPE_CHECKING:
    from pathlib import Path

SNIPPET = "Harbour pilots guide large vessels through narrow channels where tides and winds change."


class MoodyEngine:
    """A search that refuses the first `refusals` requests, with one article for each topic."""

    def __init__(self, refusals: int, retry_after: int) -> None:
        self.refusals = refusals
        self.retry_after = retry_after
        self.searches = 0
        self.searched = asyncio.Event()

    def __call__(self, request: Request) -> Reply:
        if not request.path.startswith("/search"):
            page = article("Harbours", 1)
            return Reply(body=page, headers={"Content-Type": "text/html"})
        self.searches += 1
        self.searched.set()
        if self.searches <= self.refusals:
            return Reply(429, headers={"Retry-After": str(self.retry_after)})
        url = f"http://{request.headers['host']}/article"
        return Reply(
            body=json.dumps({"results": [{"title": "Harbours", "url": url, "content": SNIPPET}]})
        )


async def test_a_blocked_request_is_searched_once_more(line_config: StreamConfig) -> None:
    """Refused with a wait of three seconds: the context comes after it, complete."""
    engine = MoodyEngine(refusals=1, retry_after=3)
    async with (
        PlayedEngine(engine) as web,
        running_line(line_config, web_settings(web.origin)),
    ):
        context = await Client(line_config.broker).ask("harbours", timeout=60)
    assert (context.outcome, engine.searches) == (schemas.ContextOutcome.COMPLETE, 2)
    (hits,) = await gather(line_config.broker, schemas.SearchHits)
    assert (hits.status, hits.provenance.cached) == ("ok", False)
    findings = await gather(line_config.broker, schemas.AuditFinding)
    assert [finding.kind for finding in findings if finding.severity == "warn"] == [
        "web_search_blocked"
    ]


@pytest.mark.timeout(300)
async def test_a_parked_request_survives_a_kill(line_config: StreamConfig) -> None:
    """Killed while requests are parked: the next worker answers every one of them, once."""
    engine = MoodyEngine(refusals=1_000, retry_after=30)
    names = [f"parked-{number}" for number in range(5)]
    records = [(name.encode(), b'{"topic": "harbours"}') for name in names]
    async with PlayedEngine(engine) as web:
        settings = web_settings(web.origin)
        async with worker_process(line_config, settings) as worker:
            await produce(line_config.broker, "topics.requested", records)
            await asyncio.wait_for(engine.searched.wait(), 60)
            await asyncio.sleep(2)
            worker.kill()
        assert await gather(line_config.broker, schemas.SearchHits) == []
        engine.refusals = 0
        async with worker_process(line_config, settings):
            contexts = await gather_until(
                line_config.broker,
                schemas.ContextReady,
                lambda found: {context.request_id for context in found} >= set(names),
            )
    assert sorted(context.request_id for context in contexts) == names
    assert {context.outcome for context in contexts} == {schemas.ContextOutcome.COMPLETE}


async def test_a_stored_search_says_so_on_the_event(
    line_config: StreamConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same topic twice with the cache on: one search, and the second record is marked."""
    monkeypatch.delenv("CITEFLOW_RESEARCH_NO_CACHE")
    engine = MoodyEngine(refusals=0, retry_after=0)
    async with PlayedEngine(engine) as web:
        settings = {**web_settings(web.origin), "research_cache_dir": str(tmp_path)}
        async with running_line(line_config, settings):
            for _ in range(2):
                context = await Client(line_config.broker).ask("harbours", timeout=60)
    assert engine.searches == 1
    assert context.provenance.cached
    hits = await gather(line_config.broker, schemas.SearchHits)
    assert sorted(record.provenance.cached for record in hits) == [False, True]
