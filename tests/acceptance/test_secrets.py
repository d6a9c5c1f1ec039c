"""No secret in any log, event, finding or exception text of a run."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace

from streams.client import Client
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.log_reader import read_log
from streams.produce import produce
from streams.topics import TOPICS
from tests.support.discord import TOKEN, playing_discord
from tests.support.line import web_settings

API_KEY, PASSWORD = "br4ve-k3y-of-the-test", "p4ssw0rd-of-the-test"


async def test_no_secret_is_told(line_config: StreamConfig) -> None:
    """A worker at its most talkative, with trouble everywhere a secret is used.

    The database is not there, Discord fails and then works, a record is bad, an option is wrong.
    """
    config = replace(line_config, database_url=f"postgresql://u:{PASSWORD}@127.0.0.1:1/none")
    async with DemoWeb() as web, playing_discord() as discord:
        discord.script.extend([500, "drop"])
        settings = web_settings(web.origin) | {
            "web_research_backends": "searxng,brave",
            "brave_api_key": API_KEY,
            "discord_webhook_url": discord.url,
            "findings_web_search_blocked_cooldown_minutes": "0",
        }
        env = {name: value for name, value in os.environ.items() if "CITEFLOW_" not in name}
        env |= {f"CITEFLOW_{key.upper()}": value for key, value in settings.items()}
        env |= {
            "CITEFLOW_BROKER": config.broker,
            "CITEFLOW_PARTITIONS": str(config.partitions),
            "CITEFLOW_APP_PREFIX": config.app_prefix,
            "CITEFLOW_DATABASE_URL": config.database_url,
            "CITEFLOW_RESEARCH_NO_CACHE": "1",
            "CITEFLOW_BROKER_PROFILE": os.environ.get("CITEFLOW_TEST_BACKEND") or "embedded",
        }
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "streams", "worker", "-v",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, env=env,
        )  # fmt: skip
        assert worker.stdout is not None
        reading = asyncio.ensure_future(worker.stdout.read())
        try:
            records = [
                (b"k", b'{"topic": 5}'),
                (b"k", b'{"topic": "x", "options": {"discord_webhook_url": 7}}'),
            ]
            await produce(config.broker, "topics.requested", records)
            await Client(config.broker).ask("Redis caching", timeout=60)
            async with asyncio.timeout(60):
                while True:
                    if discord.accepted:
                        break
                    await asyncio.sleep(0.1)
        finally:
            if worker.returncode is None:
                worker.terminate()
            logged = await reading
            await worker.wait()
    events = b"".join(
        [
            (record.value or b"") + (record.key or b"")
            for topic in TOPICS
            async for record in read_log(config.broker, topic)
        ]
    )
    assert b"Redis caching" in events
    assert b"worker ready" in logged
    posted = repr(discord.accepted).encode()
    for secret in (TOKEN, API_KEY, PASSWORD):
        for place in (logged, events, posted):
            assert secret.encode() not in place
