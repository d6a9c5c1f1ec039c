"""Where alerts go: Discord, a second webhook for what is critical, and Apprise's services."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from agents.alerts.discord import DiscordWebhook, Pause
from agents.alerts.policy import Policy, severity_of
from citeflow.findings import Severity
from citeflow.settings import SiteConfig
from schemas import AuditFinding

__all__ = ["Channels", "Delivery"]

logger = logging.getLogger(__name__)

DISCORD, CRITICAL, APPRISE = "discord", "critical", "apprise"
APPRISE_SECONDS = 30.0
# These tell addresses, in part or whole.
_TALKATIVE = ("apprise", "urllib3", "requests")


class Channel(Protocol):
    """One way out."""

    @property
    def configured(self) -> bool:
        """Whether there is somewhere to deliver to."""

    async def post(self, message: Mapping[str, Any]) -> str:
        """Deliver; returns why it was not taken, or blank."""

    async def aclose(self) -> None:
        """Close what is open."""


class Apprise:
    """The services named by `alert_apprise_urls`, through the Apprise library (extra `alerts`).

    Its addresses hold tokens and passwords, so nothing that it logs or raises is passed on.
    """

    def __init__(self, site_config: SiteConfig) -> None:
        self._site_config = site_config
        self._said_missing = False

    @property
    def configured(self) -> bool:
        """Whether addresses are set; without the library that is an error in the log, once."""
        if not self._site_config.get_str("alert_apprise_urls").strip():
            return False
        if importlib.util.find_spec("apprise") is None:
            if not self._said_missing:
                self._said_missing = True
                logger.error("alert_apprise_urls is set, Apprise is not installed: extra `alerts`")
            return False
        return True

    async def post(self, message: Mapping[str, Any]) -> str:
        """Deliver to all of them. Their own client blocks, so it runs in a thread."""
        try:
            async with asyncio.timeout(APPRISE_SECONDS):
                reason = "" if await asyncio.to_thread(self._notify, message) else "not taken"
        except Exception as exc:  # noqa: BLE001 - whatever a service's plug-in raises
            reason = type(exc).__name__
        if reason:
            logger.warning("a message was not taken through Apprise: %s", reason)
        return reason

    async def aclose(self) -> None:
        """Nothing is kept open."""

    def _notify(self, message: Mapping[str, Any]) -> bool:
        apprise: Any = importlib.import_module("apprise")
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        sender = apprise.Apprise()
        # One that is not understood must not be left out in silence.
        added = [sender.add(url) for url in self._site_config.get_list("alert_apprise_urls")]
        embed = message["embeds"][0]
        lines = [embed["description"], ""]
        lines += [f"{field['name']}: {field['value']}" for field in embed["fields"]]
        body = "\n".join(lines).strip()
        sent = sender.notify(title=embed["title"], body=body, body_format=apprise.NotifyFormat.TEXT)
        return bool(sent) and all(added)


class Delivery:
    """The channels by name, opened by use and closed together."""

    def __init__(self, site_config: SiteConfig) -> None:
        pause = Pause()
        self.channels: Mapping[str, Channel] = {
            DISCORD: DiscordWebhook(site_config, "discord_webhook_url", pause=pause),
            CRITICAL: DiscordWebhook(site_config, "discord_critical_webhook_url", pause=pause),
            APPRISE: Apprise(site_config),
        }

    async def __aenter__(self) -> Delivery:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for channel in self.channels.values():
            await channel.aclose()


class Channels:
    """Sends messages to the channels that a finding is for."""

    def __init__(self, delivery: Delivery) -> None:
        self._channels = delivery.channels

    def wanted(self, finding: AuditFinding, policy: Policy) -> tuple[str, ...]:
        """The names of the channels, of those that are set up."""
        critical = severity_of(finding.severity) is Severity.CRITICAL
        names = [DISCORD]
        if policy.delivery == "route" or critical:
            names.append(APPRISE)
        if critical:
            names.append(CRITICAL)
        return tuple(name for name in names if self._channels[name].configured)

    async def send(self, names: Sequence[str], message: Mapping[str, Any]) -> dict[str, str]:
        """Post to each; returns why not, of those that did not take it and are still set up."""
        reasons = await asyncio.gather(*(self._post(name, message) for name in names))
        return {name: reason for name, reason in zip(names, reasons, strict=True) if reason}

    async def _post(self, name: str, message: Mapping[str, Any]) -> str:
        channel = self._channels.get(name)
        if channel is None or not channel.configured:
            return ""  # taken out of use since: nobody waits for it any longer
        return await channel.post(message)
