"""Other services, through Apprise's own client, against a server on loopback."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from aiohttp import web

from agents.alerts import Channels, Delivery, Policy, finding_message
from agents.alerts import channels as channels_module
from citeflow.findings import Severity
from citeflow.settings import SiteConfig
from tests.support.alerts import finding
from tests.support.discord import playing_discord

# Of Apprise's plug-ins, which are imported in the test.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SECRET = "t0ken-of-a-service"


class Service:
    """Takes what Apprise's JSON plug-in posts."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.status = 200
        self.url = ""

    async def post(self, request: web.Request) -> web.Response:
        if self.status == 200:
            self.taken.append(await request.json())
        return web.Response(status=self.status)


@pytest.fixture
async def service() -> Any:
    played = Service()
    app = web.Application()
    app.router.add_post("/{token}", played.post)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    played.url = f"json://127.0.0.1:{runner.addresses[0][1]}/{SECRET}"
    yield played
    await runner.cleanup()


def route() -> Policy:
    return Policy("route", Severity.WARN, 0.0)


def discord_only() -> Policy:
    return Policy("discord", Severity.WARN, 0.0)


async def test_route_and_critical_go_everywhere(service: Any) -> None:
    """`route` to Discord and the services, critical to the second webhook as well."""
    async with playing_discord() as server:
        config = SiteConfig(
            {
                "discord_webhook_url": server.url,
                "discord_critical_webhook_url": f"{server.url}?critical",
                "alert_apprise_urls": service.url,
            },
            environ={},
        )
        async with Delivery(config) as delivery:
            channels = Channels(delivery)
            critical = finding(1, severity="critical")
            assert channels.wanted(finding(1), discord_only()) == ("discord",)
            assert channels.wanted(finding(1), route()) == ("discord", "apprise")
            everywhere = channels.wanted(critical, discord_only())
            assert everywhere == ("discord", "apprise", "critical")
            assert await channels.send(everywhere, finding_message(critical)) == {}
        assert len(server.accepted) == 2
    (taken,) = service.taken
    assert taken["title"] == "CRITICAL: finding 1"
    assert "kind: event\\_rejected" in taken["message"]


async def test_what_a_service_does_not_take_is_said_without_its_address(
    service: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Refused, or not understood: not taken, and no token in the log at its finest level."""
    service.status = 500
    with caplog.at_level(logging.DEBUG):
        for urls in (service.url, f"nonsense://{SECRET}", f"json://127.0.0.1:1/{SECRET}"):
            config = SiteConfig({"alert_apprise_urls": urls}, environ={})
            async with Delivery(config) as delivery:
                message = finding_message(finding(1))
                assert list(await Channels(delivery).send(("apprise",), message)) == ["apprise"]
    assert "not taken through Apprise" in caplog.text
    assert SECRET not in caplog.text


async def test_without_the_library_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then there is no such channel, and the others go on."""
    monkeypatch.setattr(channels_module.importlib.util, "find_spec", lambda name: None)
    config = SiteConfig({"alert_apprise_urls": "json://x/", "discord_webhook_url": "u"}, environ={})
    async with Delivery(config) as delivery:
        for _ in range(3):
            assert Channels(delivery).wanted(finding(1), route()) == ("discord",)
    assert caplog.text.count("not installed") == 1
