"""Posting to a Discord webhook, no faster than Discord allows.

The address of a webhook is a secret: whoever has it can post. It is in no log, exception or event.
"""

from __future__ import annotations

import asyncio
import collections
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from citeflow.settings import SiteConfig

__all__ = ["DiscordWebhook", "Pause", "Refused"]

logger = logging.getLogger(__name__)

# As measured by others: five posts in two seconds for one webhook. A process that was killed may
# have posted just before this one started, so the first two seconds count as used up.
POSTS, WINDOW_SECONDS = 5, 2.0
TRIES = 3
TIMEOUT_SECONDS = 10.0
FIRST_BACKOFF = 0.5
# A pause that is asked for and no longer than this is waited for; a longer one is for parking.
LONGEST_WAIT = 15.0
# What a pause is taken for at most, whatever is asked for.
LONGEST_PAUSE = 3600.0
# After all tries of a message failed the webhook is left alone: each message behind it would take
# as long. At first for so many seconds, doubled each time.
FIRST_REST, LONGEST_REST = 5.0, 60.0
# Deleted or forbidden: that passes by a person's hand only, and Discord bans an address for ten
# thousand such requests in ten minutes.
GONE = frozenset({401, 403, 404, 405, 410})
GONE_REST = 300.0
# What is wrong with the message passes by no waiting. Other refusals are the address's, the
# webhook's or the network's.
REFUSALS = frozenset({400, 413, 422})

_WIRE_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2")


class Refused(str):
    """A reason that is the message's own: it will not be taken later either."""


class _Redacting(logging.Filter):
    """The client's own log tells the address of each request."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "/webhooks/" not in record.getMessage()


_REDACTING = _Redacting()


@dataclass(slots=True)
class Pause:
    """Until when nobody posts, on the clock of those that share it."""

    until: float = -math.inf


class DiscordWebhook:
    """One webhook, named by the settings `url_setting` and `url_setting + "_file"`.

    Shared by all that posts to it, for the pauses it asks for are everybody's; `pause` is shared
    with other webhooks, for Discord's limit on all of them together.
    """

    def __init__(
        self,
        site_config: SiteConfig,
        url_setting: str,
        *,
        pause: Pause | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._site_config = site_config
        self._setting = url_setting
        self._shared = pause or Pause()
        self._clock = clock
        self._sleep = sleep
        self._client: httpx.AsyncClient | None = None
        self._posted = collections.deque([clock()] * POSTS, maxlen=POSTS)
        self._own = Pause()
        self._rest = Pause()
        self._failures = 0
        self._last_url = ""
        self._turn = asyncio.Lock()

    @property
    def configured(self) -> bool:
        """Whether an address is set, or a file for it: one that cannot be read now may be later."""
        return any(self._set())

    async def post(self, message: Mapping[str, Any]) -> str:
        """Post, waiting and trying again within bounds. Returns why it was not taken, or blank.

        The reason is `Refused` when it lies in the message. Raises nothing but `CancelledError`.
        """
        async with self._turn:
            url = self._url()
            if url != self._last_url:  # another one has not failed yet
                self._last_url, self._failures = url, 0
                self._rest, self._own = Pause(), Pause()
            if self._clock() < self._rest.until:
                return "left alone after failures"
            if url:
                reason = await self._tried(url, message)
            else:
                reason = f"{self._setting}_file cannot be read"
                self._leave_alone(0)
            if reason:
                logger.warning("a message was not taken by Discord: %s", reason)
            return reason

    async def aclose(self) -> None:
        """Close the connections; the webhook may be used again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _set(self) -> tuple[str, str]:
        url = self._site_config.get_str(self._setting).strip()
        return url, self._site_config.get_str(f"{self._setting}_file").strip()

    def _url(self) -> str:
        url, path = self._set()
        if url or not path:
            return url
        try:
            with open(path, encoding="utf-8") as file:
                return file.read(4096).strip()
        except (OSError, ValueError) as exc:
            logger.warning("%s_file cannot be read: %s", self._setting, type(exc).__name__)
            return ""

    async def _tried(self, url: str, message: Mapping[str, Any]) -> str:
        reason, status = "not tried", 0
        for attempt in range(TRIES):
            paused = self._paused_until() - self._clock()
            if paused > LONGEST_WAIT:
                return f"asked to wait for {paused:.0f} s"
            await self._wait_for_a_turn()
            reason, status = await self._once(url, message)
            if not reason:
                self._failures = 0
                return ""
            if status and status != 429 and status < 500:
                break
            if attempt + 1 < TRIES and self._paused_until() <= self._clock():
                await self._sleep(FIRST_BACKOFF * 2**attempt)
        self._leave_alone(status)
        return reason

    def _leave_alone(self, status: int) -> None:
        if status in GONE:
            self._rest.until = self._clock() + GONE_REST
            logger.error(
                "the webhook of %s is not there any more, or not for us (status %d): correct the "
                "setting; alerts are kept, and tried again every %.0f s",
                self._setting, status, GONE_REST,
            )  # fmt: skip
        elif not status or status >= 500:
            rest = min(FIRST_REST * 2**self._failures, LONGEST_REST)
            self._failures += 1
            self._rest.until = self._clock() + rest

    def _paused_until(self) -> float:
        return max(self._own.until, self._shared.until)

    async def _wait_for_a_turn(self) -> None:
        wait = max(self._paused_until(), self._posted[0] + WINDOW_SECONDS) - self._clock()
        if wait > 0:
            await self._sleep(wait)

    async def _once(self, url: str, message: Mapping[str, Any]) -> tuple[str, int]:
        """Why it was not taken, and the status of the answer, 0 without one."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                answer = await self._opened().post(url, json=message)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError):
            return f"{self._setting} is not an address", 404
        except (TimeoutError, httpx.HTTPError) as exc:
            return type(exc).__name__, 0
        finally:
            # The time of the answer: it came to them before that, however long it was on its way.
            self._posted.append(self._clock())
        self._heed(answer)
        status = answer.status_code
        if answer.is_success:
            return "", status
        # An address that is no number is answered in the same way as a malformed message.
        final = status in REFUSALS and b"webhook_id" not in answer.content
        return (Refused if final else str)(f"status {status}"), status

    def _heed(self, answer: httpx.Response) -> None:
        seconds, everywhere = 0.0, False
        if answer.status_code == 429:
            told = _told(answer)
            seconds = max(_seconds(answer.headers.get("retry-after")), _seconds(told[0])) or 1.0
            everywhere = told[1] or answer.headers.get("x-ratelimit-scope") == "global"
        if answer.headers.get("x-ratelimit-remaining", "").strip() == "0":
            seconds = max(seconds, _seconds(answer.headers.get("x-ratelimit-reset-after")))
        pause = self._shared if everywhere else self._own
        pause.until = max(pause.until, self._clock() + seconds)

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            for name in _WIRE_LOGGERS:
                logging.getLogger(name).addFilter(_REDACTING)
            # An operator's own address: not guarded as pages are, and no proxy from outside.
            self._client = httpx.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=TIMEOUT_SECONDS
            )
        return self._client


def _told(answer: httpx.Response) -> tuple[object, bool]:
    """The pause and whether it is for everything, as the body of a 429 tells."""
    try:
        body = answer.json()
    except ValueError:
        return None, False
    if not isinstance(body, dict):
        return None, False
    return body.get("retry_after"), body.get("global") is True


def _seconds(value: object) -> float:
    """A pause given as a number or its text; 0 for anything else."""
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_PAUSE) if math.isfinite(seconds) else 0.0
