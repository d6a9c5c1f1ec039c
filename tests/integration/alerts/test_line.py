"""Findings on Kafka, posts on Discord: cooldowns, parking and summaries, over kills."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

import schemas
from agents.alerts import discord, state
from agents.alerts.digest import last_end
from streams import apps
from streams.alert import REFUSED_TRIES
from streams.config import StreamConfig
from streams.log_reader import read_log
from streams.rejected import RejectedFilter, dead_letters, redrive
from tests.support.alerts import COOLDOWN, alerting, finding, send, titles, until
from tests.support.discord import playing_discord
from tests.support.metrics import samples


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(discord, "FIRST_REST", 0.2)
    monkeypatch.setattr(state, "FIRST_RETRY", 0.5)


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


async def test_the_digest_of_a_day_is_posted_once(
    line_config: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the day until the hour held, parked alerts among it; a restart does not repeat it."""
    monkeypatch.setattr(apps, "DIGEST_INTERVAL", 0.2)
    now = datetime.now(UTC)
    today = [
        replace(finding(number), timestamp=last_end(now, now.hour) - timedelta(hours=1))
        for number in range(3)
    ]
    before = replace(finding(9), timestamp=now - timedelta(days=3))
    settings = {"alert_digest_hour": now.hour, "findings.event_rejected.delivery": "log_only"}
    await send(line_config, before, *today)
    async with playing_discord() as server:
        async with alerting(line_config, server, **settings):
            await until(lambda: len(server.accepted) == 1)
        async with alerting(line_config, server, **settings):
            await send(line_config, finding(10, kind="after"))
            await until(lambda: len(server.accepted) == 2)
        digest = server.embeds[0]
        assert digest["title"].startswith("WARN: The day until")
        assert "findings: 3" in digest["description"]
        assert titles(server)[1] == "finding 10"


async def test_without_a_webhook_findings_are_logged(
    line_config: StreamConfig, caplog: pytest.LogCaptureFixture
) -> None:
    """No channel is set up: the log is the channel, and nothing is parked."""
    async with playing_discord() as server, alerting(line_config, server, discord_webhook_url=""):
        await send(line_config, finding(1, title="only in the log"))
        await until(lambda: "only in the log" in caplog.text)
        assert server.asked == 0


async def test_what_is_refused_for_good_is_a_dead_letter(
    line_config: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After several tries it makes room for others, and can be sent again."""
    monkeypatch.setattr(state, "FIRST_RETRY", 0.05)
    kind = "web_search_blocked"
    async with playing_discord() as server, alerting(line_config, server) as runner:

        def count(outcome: str) -> float:
            return samples(runner.metrics()).get(("citeflow_findings_total", outcome, kind), 0)

        before = {outcome: count(outcome) for outcome in ("parked", "sent", "dead_lettered")}
        server.script.extend([400] * (REFUSED_TRIES + 1))
        await send(line_config, finding(1, kind=kind))
        await until(lambda: count("dead_lettered") > before["dead_lettered"])
        assert samples(runner.metrics())["citeflow_alerts_parked",] == 0
        (letter,) = [letter async for letter in dead_letters(line_config.broker, RejectedFilter())]
        assert (letter.stage, letter.error) == ("alert", "not taken by discord: status 400")
        assert schemas.decode(letter.value, schemas.AuditFinding).title == "finding 1"
        assert titles(server) == []
        (sent,) = await redrive(line_config.broker, RejectedFilter())
        assert sent.refusal is None
        await until(lambda: titles(server) == ["finding 1"])
        # It is counted once the broker has acknowledged that it is done, after it arrived.
        await until(lambda: count("sent") > before["sent"])
        assert (count("parked"), count("sent")) == (before["parked"] + 1, before["sent"] + 1)


async def test_what_was_given_up_stays_so_and_the_rest_is_told(
    line_config: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a restart nothing is posted again; those cooled behind it are told, and a redrive is
    posted whatever the window."""
    monkeypatch.setattr(state, "FIRST_RETRY", 0.05)

    async def letters() -> int:
        return sum([1 async for _ in read_log(line_config.broker, "events.rejected")])

    async with playing_discord() as server:
        server.script.extend([400] * (REFUSED_TRIES + 1))
        async with alerting(line_config, server):
            await send(line_config, finding(1))
            await until(lambda: server.asked >= 1)
            await send(line_config, *(finding(number) for number in range(2, 7)))
            await until(lambda: len(server.accepted) == 1)
        assert titles(server) == ["5 more of event\\_rejected"]
        assert await letters() == 1
        async with alerting(line_config, server):
            await send(line_config, finding(8, source="other"), finding(9))
            await until(lambda: {"finding 8", "finding 9"} <= set(titles(server)))
            await redrive(line_config.broker, RejectedFilter())
            await until(lambda: "finding 1" in titles(server))
        assert len(server.accepted) == 4
        assert await letters() == 1


async def test_one_refusal_after_an_outage_gives_nothing_up(
    line_config: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tries that failed for other reasons do not count."""
    monkeypatch.setattr(state, "FIRST_RETRY", 0.02)
    monkeypatch.setattr(state, "LAST_RETRY", 0.1)
    monkeypatch.setattr(discord, "FIRST_REST", 0.05)
    monkeypatch.setattr(discord, "LONGEST_REST", 0.05)
    async with playing_discord() as server:
        server.down = True
        async with alerting(line_config, server):
            await send(line_config, finding(1, severity="critical"))
            await until(lambda: server.asked >= 3 * (REFUSED_TRIES + 2))
            server.script.append(400)
            server.down = False
            await until(lambda: titles(server) == ["finding 1"])
        assert [letter async for letter in dead_letters(line_config.broker, RejectedFilter())] == []


async def test_a_throttle_is_told_from_silence(line_config: StreamConfig) -> None:
    """What is held back is counted, and a kind that nobody knows is not a name of its own."""
    async with playing_discord() as server, alerting(line_config, server) as runner:
        before = samples(runner.metrics())
        await send(line_config, *(finding(number) for number in range(5)))
        await send(line_config, finding(9, kind="k" * 500))

        def more(outcome: str, kind: str) -> float:
            key = ("citeflow_findings_total", *sorted((outcome, kind)))
            return samples(runner.metrics()).get(key, 0) - before.get(key, 0)

        await until(lambda: more("sent", "other") == 1)
        await until(lambda: more("cooled", "event_rejected") == 4)
        assert more("sent", "event_rejected") == 1
        assert b"k" * 100 not in runner.metrics()
