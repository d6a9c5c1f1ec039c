"""The webhook against a server that limits, fails, stalls and hangs up."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest

from agents.alerts import Delivery, DiscordWebhook, Refused, discord
from citeflow.settings import SiteConfig
from tests.support.discord import TOKEN, FakeDiscord, playing_discord

MESSAGE = {"embeds": [{"title": "t", "description": "b"}], "allowed_mentions": {"parse": []}}


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(discord, "WINDOW_SECONDS", 0.05)


def webhook(server: FakeDiscord, **settings: object) -> DiscordWebhook:
    values = {"discord_webhook_url": server.url, **settings}
    return DiscordWebhook(SiteConfig(values, environ={}), "discord_webhook_url")


@pytest.mark.parametrize("tell_in_header", [False, True])
@pytest.mark.parametrize("retry_after", [0.3, 1])
async def test_a_rate_limit_is_waited_for(tell_in_header: bool, retry_after: float) -> None:
    """429 in the body or the header, whole or in parts of a second: not before that time."""
    async with playing_discord() as server:
        server.script.append(429)
        server.retry_after, server.tell_in_header = retry_after, tell_in_header
        hook = webhook(server)
        started = time.monotonic()
        assert await hook.post(MESSAGE) == ""
        assert time.monotonic() - started >= retry_after
        assert len(server.accepted) == 1
        assert server.asked == 2
        await hook.aclose()


async def test_a_long_pause_is_for_parking_and_for_everybody() -> None:
    """An hour is not waited for, and nothing else is posted meanwhile."""
    async with playing_discord() as server:
        server.script.append(429)
        server.retry_after = 3600
        hook = webhook(server)
        assert "asked to wait" in await hook.post(MESSAGE)
        assert "asked to wait" in await hook.post(MESSAGE)
        assert server.asked == 1
        await hook.aclose()


@pytest.mark.parametrize("trouble", [500, 503, "drop"])
async def test_passing_trouble_is_tried_again(trouble: int | str) -> None:
    """A server error, a dropped connection: three tries."""
    async with playing_discord() as server:
        hook = webhook(server)
        server.script.extend([trouble, trouble])
        assert await hook.post(MESSAGE) == ""
        assert (server.asked, len(server.accepted)) == (3, 1)
        server.script.extend([trouble] * 3)
        assert await hook.post(MESSAGE) != ""
        assert len(server.accepted) == 1
        await hook.aclose()


async def test_a_message_it_does_not_want_costs_no_other() -> None:
    """Refused once, with the status told; the next message is posted."""
    async with playing_discord() as server:
        server.script.append(400)
        hook = webhook(server)
        assert await hook.post(MESSAGE) == "status 400"
        assert await hook.post(MESSAGE) == ""
        assert (server.asked, len(server.accepted)) == (2, 1)
        await hook.aclose()


@pytest.mark.parametrize(
    ("status", "final"),
    [(400, True), (413, True), (422, True), (404, False), (405, False), (407, False), (500, False)],
)
async def test_what_lies_in_the_message_is_told_from_trouble(status: int, final: bool) -> None:
    """Only the first is never taken; a wrong address or a service in trouble may pass."""
    async with playing_discord() as server:
        server.script.extend([status] * 3)
        hook = webhook(server)
        assert isinstance(await hook.post(MESSAGE), Refused) is final
        await hook.aclose()


@pytest.mark.parametrize("status", [401, 403, 404, 405, 410])
async def test_a_webhook_that_is_gone_is_left_alone_loudly(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """One request, an error in the log, no storm; another address is tried at once."""
    async with playing_discord() as server:
        server.script.append(status)
        values = {"discord_webhook_url": server.url}
        config = SiteConfig(values, environ={})
        hook = DiscordWebhook(config, "discord_webhook_url")
        assert await hook.post(MESSAGE) == f"status {status}"
        for _ in range(10):
            assert "left alone" in await hook.post(MESSAGE)
        assert server.asked == 1
        assert [r.levelname for r in caplog.records if "discord_webhook_url" in r.message] == [
            "ERROR"
        ]
        config.reload({"discord_webhook_url": f"{server.url}?wait=true"})
        assert await hook.post(MESSAGE) == ""
        await hook.aclose()


async def test_after_all_tries_it_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The messages behind one that failed do not take as long; afterwards it is tried again."""
    monkeypatch.setattr(discord, "FIRST_REST", 0.5)
    async with playing_discord() as server:
        server.down = True
        hook = webhook(server)
        assert await hook.post(MESSAGE) == "status 503"
        assert "left alone" in await hook.post(MESSAGE)
        assert server.asked == discord.TRIES
        server.down = False
        for _ in range(400):
            if await hook.post(MESSAGE) == "":
                break
            await asyncio.sleep(0.05)
        assert len(server.accepted) == 1
        await hook.aclose()


@pytest.mark.parametrize("tell_in_header", [False, True])
@pytest.mark.parametrize("for_everything", [False, True])
async def test_a_limit_for_everything_holds_for_the_other_webhook(
    tell_in_header: bool, for_everything: bool
) -> None:
    """Discord's limit on all requests pauses both; the limit of one webhook is its own."""
    async with playing_discord() as server:
        server.script.append(429)
        server.retry_after, server.tell_in_header = 3600, tell_in_header
        server.for_everything = for_everything
        config = SiteConfig(
            {
                "discord_webhook_url": server.url,
                "discord_critical_webhook_url": f"{server.url}?critical",
            },
            environ={},
        )
        async with Delivery(config) as delivery:
            await delivery.channels["discord"].post(MESSAGE)
            other = await delivery.channels["critical"].post(MESSAGE)
        assert ("asked to wait" in other) is for_everything
        assert server.asked == (1 if for_everything else 2)


async def test_a_server_that_stalls_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try has its time."""
    monkeypatch.setattr(discord, "TIMEOUT_SECONDS", 0.2)
    async with playing_discord() as server:
        server.script.extend(["slow"] * 3)
        hook = webhook(server)
        assert "Timeout" in await hook.post(MESSAGE)
        assert server.asked == 3
        await hook.aclose()


async def test_never_more_than_five_in_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is kept, not run into; also by a second process right after the first."""
    monkeypatch.setattr(discord, "WINDOW_SECONDS", 2.0)
    async with playing_discord() as server:
        for _ in range(2):
            hook = webhook(server)
            for _ in range(6):
                assert await hook.post(MESSAGE) == ""
            await hook.aclose()
        assert len(server.accepted) == 12
        assert server.over_the_limit == 0


async def test_the_address_is_told_nowhere(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Neither in a log at the finest level, nor in what is returned; from a file as well."""
    secret = tmp_path / "webhook"
    async with playing_discord() as server:
        secret.write_text(f"{server.url}\n")
        with caplog.at_level(logging.DEBUG):
            for hook in (
                webhook(server),
                webhook(server, discord_webhook_url="", discord_webhook_url_file=str(secret)),
                webhook(server, discord_webhook_url=f"not an address {TOKEN}"),
                webhook(server, discord_webhook_url=f"http://127.0.0.1:1/webhooks/{TOKEN}"),
            ):
                server.script.extend([500, 404])
                assert TOKEN not in await hook.post(MESSAGE)
                await hook.aclose()
    for record in caplog.records:
        assert TOKEN not in record.getMessage()
        assert TOKEN not in repr(record.args)


async def test_a_file_that_cannot_be_read_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a secret is exchanged alerts are kept, with a word about it."""
    monkeypatch.setattr(discord, "FIRST_REST", 0.1)
    path = tmp_path / "webhook"
    async with playing_discord() as server:
        hook = webhook(server, discord_webhook_url="", discord_webhook_url_file=str(path))
        assert hook.configured
        assert "cannot be read" in await hook.post(MESSAGE)
        assert "discord_webhook_url_file" in caplog.text
        path.write_text(server.url)
        assert await hook.post(MESSAGE) == ""
        await hook.aclose()
    assert not webhook(server, discord_webhook_url="").configured
