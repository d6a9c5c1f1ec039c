"""Findings on Kafka, posts on Discord: cooldowns, parking and summaries, over kills."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime

import pytest

import schemas
from agents.alerts import discord, state
from citeflow.settings import SiteConfig
from streams import apps
from streams.config import StreamConfig
from streams.produce import produce
from streams.runner import WorkerRunner
from tests.support.discord import FakeDiscord, playing_discord
from tests.support.line import worker_process

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
COOLDOWN = "findings.event_rejected.cooldown_minutes"


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(discord, "FIRST_REST", 0.2)
    monkeypatch.setattr(state, "FIRST_RETRY", 0.5)


def finding(number: int, **changes: str) -> schemas.AuditFinding:
    values = {
        "event_id": f"event-{number}", "source": "search_agent", "kind": "event_rejected",
        "severity": "warn", "title": f"finding {number}", "body": "b", "dedup_key": f"d{number}",
    } | changes  # fmt: skip
    return schemas.AuditFinding(timestamp=NOW, **values)  # type: ignore[arg-type]


async def send(config: StreamConfig, *findings: schemas.AuditFinding) -> None:
    await produce(
        config.broker,
        "audit.findings",
        [(record.key, schemas.encode(record)) for record in findings],
    )


@contextlib.asynccontextmanager
async def alerting(
    config: StreamConfig, server: FakeDiscord, **settings: object
) -> AsyncIterator[WorkerRunner]:
    values = {"discord_webhook_url": server.url, COOLDOWN: 60, **settings}
    site_config = SiteConfig(values, environ={})
    async with WorkerRunner(config, site_config, apps=["alert"]) as runner:
        yield runner


async def until(condition: Callable[[], bool], seconds: float = 40) -> None:
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(0.05)


def titles(server: FakeDiscord) -> list[str]:
    return [embed["title"].split(": ", 1)[-1] for embed in server.embeds]


async def test_five_of_a_kind_are_one_post(line_config: StreamConfig) -> None:
    """The rest is counted; another source, and what is critical, is posted all the same."""
    async with playing_discord() as server, alerting(line_config, server):
        await send(line_config, *(finding(number) for number in range(5)))
        await send(line_config, finding(10, severity="info", source="quiet"))
        await send(line_config, finding(11, source="fetch_agent"))
        await send(line_config, finding(12, severity="critical"))
        await until(lambda: {"finding 11", "finding 12"} <= set(titles(server)))
        assert sorted(titles(server)) == ["finding 0", "finding 11", "finding 12"]
        assert server.accepted[0][1]["allowed_mentions"] == {"parse": []}


async def test_a_window_is_opened_by_a_delivery_and_survives_restarts(
    line_config: StreamConfig,
) -> None:
    """Refused: no window, the finding waits and arrives. Delivered: quiet, also after a restart."""
    async with playing_discord() as server:
        server.down = True
        async with alerting(line_config, server):
            await send(line_config, finding(1))
            await until(lambda: server.asked >= 3)
        async with alerting(line_config, server):
            server.down = False
            await until(lambda: titles(server) == ["finding 1"])
            await send(line_config, finding(2))
        async with alerting(line_config, server):
            await send(line_config, finding(3), finding(4, source="other"))
            await until(lambda: "finding 4" in titles(server))
        assert titles(server) == ["finding 1", "finding 4"]


async def test_the_end_of_a_window_says_how_many_were_held_back(line_config: StreamConfig) -> None:
    """One post, then a summary of the others, then the next one is posted again."""
    async with playing_discord() as server, alerting(line_config, server, **{COOLDOWN: 0.05}):
        await send(line_config, *(finding(number) for number in range(4)))
        await until(lambda: len(server.accepted) == 2)
        assert titles(server) == ["finding 0", "3 more of event\\_rejected"]
        await send(line_config, finding(5))
        await until(lambda: titles(server)[2:] == ["finding 5"])


async def test_a_finding_that_comes_again_is_neither_posted_nor_counted(
    line_config: StreamConfig,
) -> None:
    """The same event twice, delivered, critical or without a cooldown; before and after a restart.

    And the same words from a kind without a cooldown are told once.
    """
    loud = {"kind": "loud_kind", "severity": "error"}
    again = [
        finding(1),
        finding(2, **loud),
        finding(3, severity="critical"),
    ]
    async with playing_discord() as server:
        async with alerting(line_config, server):
            await send(line_config, *again, *again)
            await until(lambda: len(server.accepted) == 3)
        async with alerting(line_config, server):
            await send(line_config, *again, finding(4, dedup_key="d2", **loud))
            await send(line_config, finding(5, **loud), finding(6, source="last"))
            await until(lambda: {"finding 5", "finding 6"} <= set(titles(server)))
        assert sorted(titles(server)) == [f"finding {number}" for number in (1, 2, 3, 5, 6)]


async def test_a_finding_of_any_size_does_not_stop_the_line(line_config: StreamConfig) -> None:
    """Parked as well: what is kept of it is what a message shows."""
    huge = finding(1, kind="k" * 150_000, source="s" * 150_000, body="b" * 150_000)
    async with playing_discord() as server:
        server.down = True
        async with alerting(line_config, server):
            await send(line_config, huge)
            await until(lambda: server.asked >= 3)
            server.down = False
            await send(line_config, finding(2))
            await until(lambda: set(titles(server)) == {"finding 1", "finding 2"})


async def test_without_a_webhook_findings_are_logged(
    line_config: StreamConfig, caplog: pytest.LogCaptureFixture
) -> None:
    """No channel is set up: the log is the channel, and nothing is parked."""
    async with playing_discord() as server, alerting(line_config, server, discord_webhook_url=""):
        await send(line_config, finding(1, title="only in the log"))
        await until(lambda: "only in the log" in caplog.text)
        assert server.asked == 0


async def test_the_digest_is_told_once(
    line_config: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its hour, by whoever has its partition; a restart in that hour does not tell it again."""
    monkeypatch.setattr(apps, "DIGEST_INTERVAL", 0.3)
    monkeypatch.setattr(apps, "utc_now", lambda: NOW)
    settings = {"alert_digest_hour": NOW.hour, "findings.event_rejected.delivery": "log_only"}
    await send(line_config, *(finding(number) for number in range(3)))
    blocked = finding(9, kind="web_search_blocked", severity="info")
    await send(line_config, blocked)
    async with playing_discord() as server:
        async with alerting(line_config, server, **settings):
            await until(lambda: len(server.accepted) == 1)
        async with alerting(line_config, server, **settings):
            await send(line_config, finding(10, source="x", kind="other"))
            await until(lambda: "finding 10" in titles(server))
            await asyncio.sleep(1)
    assert len(server.accepted) == 2
    body = server.embeds[0]["description"]
    assert "4 findings" in body
    assert "event\\_rejected 3" in body
    assert "search backends that refused" in body


@pytest.mark.timeout(240)
async def test_nothing_is_lost_over_kills(line_config: StreamConfig) -> None:
    """60 findings of six kinds, a server that fails, five kills: each one that is due arrives.

    Two kinds have no cooldown, one of them is critical; the others are posted once per source.
    """
    kinds = ["critical_kind", "loud_kind", *(f"cooled_{number}" for number in range(4))]
    findings = [
        finding(
            number,
            kind=kinds[number % 6],
            severity="critical" if number % 6 == 0 else "error",
            source=f"source-{number // 6 % 2}",
        )
        for number in range(60)
    ]
    settings: Mapping[str, str] = {
        f"findings_cooled_{number}_cooldown_minutes": "600" for number in range(4)
    }
    async with playing_discord() as server:
        server.script.extend([503, 429, "drop", 500, 503, 503, 503, 429, "drop"])
        env = {"discord_webhook_url": server.url, **settings}
        command = (sys.executable, "-m", "streams", "worker", "--app", "alert")
        await send(line_config, *findings)
        for lived in (0.3, 1.5, 3.0, 2.0, 2.5):
            async with worker_process(line_config, env, command=command) as worker:
                await asyncio.sleep(lived)
                worker.kill()

        def arrived() -> Counter[str]:
            return Counter(embed["footer"]["text"] for embed in server.embeds if "footer" in embed)

        loud = {f.event_id for f in findings if f.kind in ("critical_kind", "loud_kind")}
        async with worker_process(line_config, env, command=command):
            await until(
                lambda: loud <= arrived().keys() and len(arrived()) >= len(loud) + 8, seconds=90
            )
            await asyncio.sleep(1)
    by_id = {f.event_id: f for f in findings}
    cooled = Counter(
        (by_id[event_id].kind, by_id[event_id].source)
        for event_id in arrived()
        if event_id not in loud
    )
    assert set(cooled.values()) == {1}
    assert len(cooled) == 8
    assert server.over_the_limit == 0
