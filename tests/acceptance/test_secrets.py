"""No secret in any log, event, finding or exception text of a run."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import asyncpg
import pytest
from aiohttp import web

import schemas
from streams.apps import required_topics
from streams.config import StreamConfig
from streams.log_reader import read_log
from streams.produce import produce
from tests.support.alerts import finding, send, titles, until
from tests.support.discord import TOKEN, playing_discord
from tests.support.line import gather_until, worker_environment
from tests.support.postgres import local_postgres
from tests.support.webs import serving

ROOT = Path(__file__).parents[2]
SCRIPT = """
import logging, os, sys
logging.basicConfig(level=logging.DEBUG)
from citeflow.search.brave import BraveBackend
BraveBackend.__init__.__kwdefaults__["api_url"] = os.environ["PLAYED_BRAVE"]
from streams.cli import main
apps = [word for app in ("search", "fetch", "join", "alert", "audit") for word in ("--app", app)]
sys.exit(main(["worker", "-v", *apps]))
"""
SECRETS = {
    "webhook": TOKEN,
    "critical webhook": "cr1tical-webhook-t0ken",
    "API key": "brave-k3y-0123456789",
    "database password": "pa55word-of-postgres",
}


@pytest.mark.timeout(240)
async def test_no_secret_is_told(line_config: StreamConfig, tmp_path: Path) -> None:
    """A run with trouble everywhere: not in its log at the finest level, not in any event.

    Nor in what is posted, copied to PostgreSQL, or said by the commands.
    """

    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=429, text=f"no {request.headers['X-Subscription-Token']}")

    log = tmp_path / "log"
    with local_postgres() as database:
        url = database.url.replace("postgres@", f"postgres:{SECRETS['database password']}@")
        for name in ("app_settings", "audit_log"):
            await run_sql(url, (ROOT / f"ops/sql/{name}.sql").read_text())
        config = dataclasses.replace(line_config, database_url=url)
        async with playing_discord() as server, serving({"/brave": refuse}) as origin:
            server.script.extend(["drop", 503])
            settings = {
                "web_research_backends": "brave,searxng",
                "web_research_searxng_url": origin,
                "brave_api_key": SECRETS["API key"],
                "discord_webhook_url": server.url,
                "discord_critical_webhook_url": f"{server.origin}/api/webhooks/9/"
                + SECRETS["critical webhook"],
                "settings_poll_seconds": "1",
            }
            environment = worker_environment(config, settings)
            with log.open("wb") as file:
                worker = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", SCRIPT, stdin=asyncio.subprocess.DEVNULL,
                    stdout=file, stderr=file, cwd=ROOT,
                    env={**environment, "PLAYED_BRAVE": f"{origin}/brave"},
                )  # fmt: skip
            try:
                await until(lambda: b"worker ready" in log.read_bytes(), 90)
                await produce(config.broker, "topics.requested", [(b"r", b'{"topic": "canals"}')])
                wrong = b'{"topic": "x", "options": {"discord_webhook_url": 7}}'
                rejected = [(b"b", b'{"topic": 5}'), (b"o", wrong)]
                await produce(config.broker, "topics.requested", rejected)
                await send(config, finding(1, severity="critical", kind="fire"))
                await send(config, finding(2, source="another"))
                await gather_until(config.broker, schemas.ContextReady, bool)
                await until(lambda: {"finding 1", "finding 2"} <= set(titles(server)), 60)
                server.script.extend([404] * 5)
                await send(config, finding(3, source="a third"))
                await until(lambda: b"not for us" in log.read_bytes(), 60)
                rows = await run_sql(url, "SELECT * FROM audit_log")
                assert rows
                database.stop()
                await until(lambda: b"cannot be read from the database" in log.read_bytes(), 60)
                worker.send_signal(signal.SIGTERM)
                await asyncio.wait_for(worker.wait(), 60)
            finally:
                if worker.returncode is None:
                    worker.kill()
                    await worker.wait()
            told = {"log": log.read_bytes(), "posts": repr(server.accepted).encode()}
            told["rows"] = repr([dict(row) for row in rows]).encode()
            for spec in required_topics(config):
                records = [record async for record in read_log(config.broker, spec.name)]
                told[spec.name] = repr(records).encode()
            for words in (
                ("citeflow", "settings", "list"),
                ("citeflow", "settings", "explain", "brave_api_key"),
                ("streams", "findings", "list", "--json"),
            ):
                told[" ".join(words)] = await said(words, environment)
    assert b"DEBUG" in told["log"]
    assert SECRETS["API key"].encode() not in told["log"]
    assert b"event_rejected" in told["audit.findings"]
    assert b"web_search_blocked" in told["streams findings list --json"]
    found = {
        (where, name)
        for where, text in told.items()
        for name, secret in SECRETS.items()
        if secret.encode() in text
    }
    assert found == set()


async def run_sql(url: str, sql: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        if sql.startswith("SELECT"):
            return list(await connection.fetch(sql))
        await connection.execute(sql)
        return []
    finally:
        await connection.close()


async def said(words: Sequence[str], environment: Mapping[str, str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *words, cwd=ROOT, env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    return output
