"""A running worker and its settings in PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

import schemas
from streams.client import Client
from streams.config import StreamConfig
from streams.demo import DemoWeb
from tests.support.line import gather, web_settings, worker_process
from tests.support.postgres import local_postgres

SQL = (Path(__file__).parents[2] / "ops/sql/app_settings.sql").read_text()
KEY = "research_min_snippet_words"
TOPIC = "FastAPI streaming responses"


async def settings_command(url: str, *words: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "citeflow", "settings", *words,
        stdin=asyncio.subprocess.DEVNULL, env={**os.environ, "CITEFLOW_DATABASE_URL": url},
    )  # fmt: skip
    assert await process.wait() == 0


@pytest.mark.timeout(240)
async def test_a_change_reaches_a_running_worker_and_an_outage_fails_no_request(
    line_config: StreamConfig,
) -> None:
    """`settings set` counts for the next corpus; PostgreSQL stops and starts under requests."""
    with local_postgres() as server:
        connection = await asyncpg.connect(server.url)
        await connection.execute(SQL)
        await connection.close()
        config = replace(line_config, database_url=server.url)
        client = Client(config.broker)
        async with (
            DemoWeb() as web,
            worker_process(config, {**web_settings(web.origin), "settings_poll_seconds": "1"}),
        ):
            before = await client.ask(TOPIC, timeout=60)
            assert before.sources

            await settings_command(server.url, "set", KEY, "50")
            changed_at = time.monotonic()
            while True:
                after = await client.ask(TOPIC, timeout=60)
                if not after.sources:
                    break
                # The first that does not know of it was asked within two seconds of the change,
                # and as long again for a machine that is busy.
                assert time.monotonic() - changed_at < 10

            await asyncio.to_thread(server.stop)
            answers = [await client.ask(TOPIC, timeout=60) for _ in range(3)]
            assert [answer.sources for answer in answers] == [()] * 3  # the last known value
            await asyncio.to_thread(server.start)
            await settings_command(server.url, "unset", KEY)
            async with asyncio.timeout(60):
                while not (answer := await client.ask(TOPIC, timeout=60)).sources:
                    pass
            assert answer.corpus == before.corpus

        findings = await gather(config.broker, schemas.AuditFinding)
        assert [f.kind for f in findings].count("settings_database_down") == 1
        failed = (schemas.ContextOutcome.BLOCKED, schemas.ContextOutcome.FAILED)
        contexts = await gather(config.broker, schemas.ContextReady)
        assert not [context for context in contexts if context.outcome in failed]
        assert await gather(config.broker, schemas.EventRejected) == []
