"""Findings copied to PostgreSQL, and what the command line shows of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest

import schemas
from citeflow.settings import SiteConfig
from streams.config import StreamConfig
from streams.findings import FindingFilter, findings
from streams.produce import produce
from streams.runner import WorkerRunner
from tests.support.alerts import alerting, until
from tests.support.discord import playing_discord
from tests.support.postgres import local_postgres

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SQL = Path(__file__).parents[3] / "ops/sql/audit_log.sql"


def finding(number: int, kind: str = "event_rejected", severity: str = "warn") -> bytes:
    record = schemas.AuditFinding(
        event_id=f"event-{number}", timestamp=NOW, source="search_agent", kind=kind,
        severity=severity, title=f"title {number}\x1b[31m", body="NUL \0 and \\u0000",
        dedup_key="d", extra={"a\0": ["b\0", {"host": "x"}]},
    )  # fmt: skip
    return schemas.encode(record)


async def test_each_finding_is_a_row_once(line_config: StreamConfig, database_url: str) -> None:
    """Also one that comes twice, and one with what PostgreSQL cannot hold; before the table is."""
    config = replace(line_config, database_url=database_url)
    records = [(b"k", finding(number)) for number in (1, 2, 2)]
    await produce(config.broker, "audit.findings", records)
    connection = await asyncpg.connect(database_url)
    async with WorkerRunner(config, SiteConfig(environ={}), apps=["audit"]):
        await asyncio.sleep(0.5)
        await connection.execute(SQL.read_text())
        await produce(config.broker, "audit.findings", [(b"k", finding(3, severity="critical"))])
        async with asyncio.timeout(40):
            while True:
                rows = await connection.fetch("SELECT * FROM audit_log ORDER BY event_id")
                if len(rows) == 3:
                    break
                await asyncio.sleep(0.1)
    await connection.close()
    assert [row["event_type"] for row in rows] == ["finding"] * 3
    assert [row["severity"] for row in rows] == ["warn", "warn", "critical"]
    details = json.loads(rows[0]["details"])
    assert details["kind"] == "event_rejected"
    assert details["body"] == "NUL  and \\u0000"
    assert details["extra"] == {"a": ["b", {"host": "x"}]}


async def test_commands(line_config: StreamConfig) -> None:
    """List, by kind, severity and time; summary; control sequences stay out of the terminal."""
    await produce(
        line_config.broker,
        "audit.findings",
        [
            (b"k", finding(1)),
            (b"k", finding(1)),
            (b"k", finding(2, severity="critical")),
            (b"k", finding(3, kind="web_search_failed", severity="info")),
            (b"k", b"no finding"),
        ],
    )

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "streams", "findings", *words]
        command += ["--broker", line_config.broker]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    async def said(*words: str) -> list[str]:
        return (await asyncio.to_thread(run, *words)).splitlines()

    listed = await said("list")
    assert len(listed) == 3
    assert "\x1b" not in "".join(listed)
    assert len(await said("list", "--kind", "event_rejected", "--severity", "error")) == 1
    assert await said("list", "--since", "1h") == []
    assert await said("list", "--until", "2026-03-01") == []
    assert [line.split() for line in await said("summary")] == [
        ["1", "warn"],
        ["1", "critical"],
        ["1", "info"],
        ["2", "event_rejected"],
        ["1", "web_search_failed"],
        ["3", "2026-03-01"],
    ]
    (one,) = await said("list", "--severity", "critical", "--json")
    assert json.loads(one)["event_id"] == "event-2"


async def test_tail_begins_with_what_is_to_come(line_config: StreamConfig) -> None:
    """Nothing of what was there is repeated, unless it is asked for with a time."""
    await produce(line_config.broker, "audit.findings", [(b"k", finding(1))])
    told: set[str] = set()

    async def follow(since: datetime | None) -> None:
        chosen = FindingFilter(since=since)
        async with contextlib.aclosing(findings(line_config.broker, chosen, follow=True)) as log:
            async for found in log:
                told.add(found.event_id)

    following = asyncio.create_task(follow(None))
    number = 1
    async with asyncio.timeout(40):
        while True:
            if told:
                break
            number += 1
            await produce(line_config.broker, "audit.findings", [(b"k", finding(number))])
            await asyncio.sleep(0.2)
    following.cancel()
    assert "event-1" not in told
    told.clear()
    following = asyncio.create_task(follow(NOW))
    async with asyncio.timeout(40):
        while True:
            if "event-1" in told:
                break
            await asyncio.sleep(0.05)
    following.cancel()


@pytest.mark.timeout(240)
async def test_an_outage_of_the_database_loses_no_row(line_config: StreamConfig) -> None:
    """Findings wait on Kafka while it is stopped, and are copied when it is back; alerts go on."""
    with local_postgres() as server:
        connection = await asyncpg.connect(server.url)
        await connection.execute(SQL.read_text())
        await connection.close()
        config = replace(line_config, database_url=server.url)
        async with (
            playing_discord() as discord,
            alerting(config, discord),
            WorkerRunner(config, SiteConfig(environ={}), apps=["audit"]),
        ):
            await produce(config.broker, "audit.findings", [(b"k", finding(1))])
            await until(lambda: len(discord.accepted) == 1)
            await rows_of(server.url, 1)
            server.stop()
            loud = [(b"k", finding(number, severity="critical")) for number in (2, 3)]
            await produce(config.broker, "audit.findings", loud)
            await until(lambda: len(discord.accepted) == 3)
            server.start()
            assert await rows_of(server.url, 3) == ["event-1", "event-2", "event-3"]


async def rows_of(url: str, count: int) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        async with asyncio.timeout(60):
            while True:
                rows = await connection.fetch("SELECT event_id FROM audit_log ORDER BY event_id")
                if len(rows) == count:
                    return [row["event_id"] for row in rows]
                await asyncio.sleep(0.1)
    finally:
        await connection.close()
