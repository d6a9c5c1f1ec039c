"""A worker that ends on a fault says so, also when Kafka takes nothing."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import pytest

import schemas
from agents.alerts import discord
from citeflow.settings import SiteConfig
from streams import cli, last_words
from streams.config import StreamConfig
from streams.last_words import STAMP, hand_in, say_last_words
from streams.runner import WorkerCrashedError, WorkerRunner
from tests.support.alerts import alerting, finding, send, titles, until
from tests.support.discord import FakeDiscord, playing_discord
from tests.support.line import gather

FAULT = "the broker takes no records"


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(discord, "WINDOW_SECONDS", 0.05)


def settings(server: FakeDiscord, spool: Path) -> SiteConfig:
    values = {
        "discord_webhook_url": server.url,
        "discord_critical_webhook_url": f"{server.url}?critical",
        "alert_spool_dir": str(spool),
    }
    return SiteConfig(values, environ={})


async def test_it_is_posted_at_once_and_recorded_later(
    line_config: StreamConfig, tmp_path: Path
) -> None:
    """To both webhooks, without Kafka; the next worker puts it on its topic, not to Discord."""
    async with playing_discord() as server:
        config = settings(server, tmp_path / "spool")
        await say_last_words(config, FAULT)
        assert titles(server) == ["A worker ended on a fault"] * 2
        assert "takes no records" in server.embeds[0]["description"]
        await hand_in(config, line_config.broker)
        assert [path.name for path in (tmp_path / "spool").iterdir()] == [STAMP]
        (recorded,) = await gather(line_config.broker, schemas.AuditFinding)
        assert (recorded.kind, recorded.severity) == ("worker_ended", "critical")
        async with alerting(line_config, server):
            await send(line_config, finding(1))
            await until(lambda: "finding 1" in titles(server))
        assert len(server.accepted) == 3


async def test_what_could_not_be_posted_is_posted_by_the_next_worker(
    line_config: StreamConfig, tmp_path: Path
) -> None:
    """Kept in a file meanwhile. A file that is no finding disturbs nothing."""
    async with playing_discord() as server:
        config = settings(server, tmp_path)
        server.down = True
        await say_last_words(config, FAULT)
        server.down = False
        (tmp_path / "junk.json").write_text("{")
        await hand_in(config, line_config.broker)
        async with alerting(line_config, server):
            await until(lambda: titles(server) == ["A worker ended on a fault"])


async def test_a_worker_that_is_started_again_and_again_is_told_once(
    line_config: StreamConfig, tmp_path: Path
) -> None:
    """One post in a quarter of an hour; each end is on the topic in the end."""
    async with playing_discord() as server:
        config = settings(server, tmp_path)
        for _ in range(3):
            await say_last_words(config, FAULT)
        assert len(server.accepted) == 2  # one to each webhook
        await hand_in(config, line_config.broker)
        recorded = await gather(line_config.broker, schemas.AuditFinding)
        assert len({finding.event_id for finding in recorded}) == 3
        assert all(finding.extra for finding in recorded)


async def test_neither_a_full_disk_nor_a_silent_server_keeps_a_worker_from_ending(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends in time, with a word in the log."""
    monkeypatch.setattr(last_words, "SECONDS", 0.5)
    (tmp_path / "spool").write_text("not a directory")
    async with playing_discord() as server:
        server.script.extend(["slow"] * 4)
        await say_last_words(settings(server, tmp_path / "spool"), FAULT)
        await hand_in(settings(server, tmp_path / "spool"), "127.0.0.1:1")
    assert "could not be kept" in caplog.text
    assert "could not be told in time" in caplog.text


async def test_the_worker_command_tells_of_its_end(
    line_config: StreamConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash of an application: exit code 1, and a post."""

    async def crash(self: WorkerRunner) -> None:
        raise WorkerCrashedError(FAULT)

    monkeypatch.setattr(WorkerRunner, "wait", crash)
    monkeypatch.setattr(cli, "end_in", lambda seconds, code: None)
    arguments = argparse.Namespace(app=["alert"], broker_timeout=30.0, health_port=None)
    async with playing_discord() as server:
        monkeypatch.setenv("CITEFLOW_DISCORD_WEBHOOK_URL", server.url)
        monkeypatch.setenv("CITEFLOW_ALERT_SPOOL_DIR", str(tmp_path))
        code = await cli._worker(arguments, dataclasses.replace(line_config))
        assert (code, titles(server)) == (1, ["A worker ended on a fault"])
