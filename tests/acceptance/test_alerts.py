"""What operators hear of: all that is due, not too often, and no secret."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import asyncpg
import pytest
from aiohttp import web

import schemas
from citeflow.findings import collect_findings, emit_finding
from streams.apps import required_topics
from streams.audit import audit_record
from streams.config import StreamConfig
from streams.log_reader import read_log
from streams.produce import produce
from tests.support.alerts import NOW, alerting, finding, send, titles, until
from tests.support.broker import BACKEND
from tests.support.discord import TOKEN, playing_discord
from tests.support.line import gather_until, worker_environment
from tests.support.postgres import local_postgres
from tests.support.webs import serving

ROOT = Path(__file__).parents[2]


@pytest.mark.broker
@pytest.mark.timeout(240)
@pytest.mark.skipif(BACKEND == "containers", reason="starts a broker of its own")
async def test_what_is_due_arrives_over_kills() -> None:
    """40 findings of 20 kinds, trouble and two kills: see the promises in benchmarks.alerts."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.alerts", "--broker", BACKEND, "--findings", "40",
        "--kills", "2", "--longest-life", "2.5", "--hurry", "0.05", "--patience", "150",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    report, _ = await process.communicate()
    assert process.returncode == 0, report.decode()


async def test_case_30(line_config: StreamConfig, caplog: pytest.LogCaptureFixture) -> None:
    """Of the research corpus: severities, cooldowns, limits and mentions, as written there."""
    with collect_findings() as emitted:
        emit_finding(source="s", kind="k", title="t", body="b", severity="warning")
    stored = audit_record(emitted[0], stage="search", request_id="r", timestamp=NOW)
    assert stored.severity == "warn"

    unreadable = {"kind": "kind_with_a_typo"}
    async with playing_discord() as server:
        server.script.append(429)
        server.retry_after = 0.5
        settings = {"findings.kind_with_a_typo.cooldown_minutes": "soon"}
        async with alerting(line_config, server, **settings):
            started = time.monotonic()
            await send(line_config, *(finding(number) for number in range(5)))
            await send(line_config, finding(10, severity="info", source="quiet"))
            await send(line_config, finding(11, source="fetch_agent"))
            await send(line_config, finding(12, severity="critical"))
            await send(line_config, finding(13, **unreadable), finding(14, **unreadable))
            hostile = "@everyone <@123> [free](https://evil.example/x) " + "ä🎉" * 2500
            await send(line_config, finding(15, source="last", title=hostile, body=hostile))
            await until(lambda: len(server.accepted) >= 6)
        posted = titles(server)
    assert {f"finding {number}" for number in (0, 11, 12, 13, 14)} < set(posted)
    assert len(posted) == 6
    assert "findings.kind_with_a_typo.cooldown_minutes is 'soon': no cooldown" in caplog.text
    first = next(at for at, m in server.accepted if "finding 0" in m["embeds"][0]["title"])
    assert first - started >= 0.5
    (last,) = (m for _, m in server.accepted if "everyone" in m["embeds"][0]["title"])
    (embed,) = last["embeds"]
    assert last["allowed_mentions"] == {"parse": []}
    assert "content" not in last
    for text, limit in ((embed["title"], 256), (embed["description"], 2000)):
        assert len(text.encode("utf-16-le")) // 2 <= limit
        assert "@everyone" not in text
        assert "<@" not in text.replace("\\<", "")
        assert "](" not in text
        assert "://" not in text
        assert text.endswith("…")


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
                await produce(config.broker, "topics.requested", [(b"b", b'{"topic": 5}')])
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
