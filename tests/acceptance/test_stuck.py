"""A worker that cannot go forward ends with a reason instead of staying as a zombie."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

import schemas
from streams.client import Client
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.embedded import EmbeddedBroker, free_port
from streams.produce import produce
from streams.runner import wait_for_topics
from tests.support.broker import BACKEND
from tests.support.discord import playing_discord
from tests.support.line import web_settings, worker_process
from tests.support.metrics import samples


async def test_a_paused_worker_ends_when_it_goes_on(line_config: StreamConfig) -> None:
    """SIGSTOP for longer than the session, then SIGCONT: the process must not act as a member."""
    async with DemoWeb() as web:
        settings = web_settings(web.origin)
        async with worker_process(line_config, settings) as worker:
            worker.send_signal(signal.SIGSTOP)
            await asyncio.sleep(line_config.session_timeout + 4.5)
            worker.send_signal(signal.SIGCONT)
            assert await asyncio.wait_for(worker.wait(), 30) == 1
        async with worker_process(line_config, settings):
            context = await Client(line_config.broker).ask("Redis caching", timeout=60)
    assert context.outcome == schemas.ContextOutcome.COMPLETE


@pytest.mark.skipif(BACKEND != "embedded", reason="kills a broker of its own, the embedded one")
@pytest.mark.parametrize("busy", [False, True])
async def test_a_worker_whose_broker_is_gone_ends(
    busy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle or at work: no broker for longer than `broker_timeout`: exit code 1, in bounded time.

    It says so on Discord, to which it needs no broker.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    broker = EmbeddedBroker()
    broker.start()
    try:
        await broker.wait_ready()
        config = replace(StreamConfig(), broker=broker.address, partitions=2)
        await wait_for_topics(config)
        async with DemoWeb() as web, playing_discord() as discord:
            settings = {**web_settings(web.origin), "discord_webhook_url": discord.url}
            async with worker_process(config, settings) as worker:
                if busy:
                    requests = [(None, b'{"topic": "Redis caching"}')] * 40
                    await produce(config.broker, "topics.requested", requests)
                broker.stop()
                assert await asyncio.wait_for(worker.wait(), 50) == 1
            (embed,) = discord.embeds
            assert {"name": "kind", "value": "worker\\_ended", "inline": True} in embed["fields"]
    finally:
        broker.stop()


async def test_readiness_is_about_partitions(line_config: StreamConfig) -> None:
    """/healthz, /readyz and /metrics answer; ready means assigned and recovered."""
    port = free_port()
    command = (sys.executable, "-m", "streams", "worker", "--health-port", str(port))

    def get(path: str) -> tuple[int, object]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, json.load(answer)

    def measured() -> dict[tuple[str, ...], float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return samples(answer.read())

    async with (
        DemoWeb() as web,
        worker_process(line_config, web_settings(web.origin), command=command),
    ):
        assert await asyncio.to_thread(get, "/healthz") == (200, {"status": "ok"})
        assert await asyncio.to_thread(get, "/readyz") == (200, {"ready": True, "reasons": {}})
        await Client(line_config.broker).ask("Redis caching", timeout=60)
        values = await asyncio.to_thread(measured)
    assert values["citeflow_events_total", "handled", "search"] == 1
    assert values["citeflow_requests_remembered",] == 1
    group = f"{line_config.app_prefix}-search"
    lags = [key for key in values if key[0] == "citeflow_consumer_lag" and group in key]
    assert len(lags) == line_config.partitions
    assert ("citeflow_search_requests_total",) in {key[:1] for key in values}
    assert values["process_resident_memory_bytes",] > 1_000_000
