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
from typing import Any

import httpx

from citeflow.settings import SiteConfig

__all__ = ["DiscordWebhook"]

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

_WIRE_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2")


class _Redacting(logging.Filter):
    """The client's own log tells the address of each request."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "/webhooks/" not in record.getMessage()


_REDACTING = _Redacting()


class DiscordWebhook:
    """One webhook, named by the settings `url_setting` and `url_setting + "_file"`.

    Shared by all that posts to it, for the pauses it asks for are everybody's.
    """

    def __init__(
        self,
        site_config: SiteConfig,
        url_setting: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._site_config = site_config
        self._setting = url_setting
        self._clock = clock
        self._sleep = sleep
        self._client: httpx.AsyncClient | None = None
        self._posted = collections.deque([clock()] * POSTS, maxlen=POSTS)
        self._paused_until = clock()
        self._turn = asyncio.Lock()

    @property
    def configured(self) -> bool:
        """Whether there is an address to post to."""
        return bool(self._url())

    async def post(self, message: Mapping[str, Any]) -> str:
        """Post, waiting and trying again within bounds. Returns why it was not taken, or blank.

        Raises nothing but `CancelledError`.
        """
        reason = "not tried"
        async with self._turn:
            for attempt in range(TRIES):
                pause = self._paused_until - self._clock()
                if pause > LONGEST_WAIT:
                    return f"asked to wait for {pause:.0f} s"
                await self._wait_for_a_turn()
                reason, again = await self._once(message)
                if not again:
                    break
                if attempt + 1 < TRIES and self._paused_until <= self._clock():
                    await self._sleep(FIRST_BACKOFF * 2**attempt)
        if reason:
            logger.warning("a message was not taken by Discord: %s", reason)
        return reason

    async def aclose(self) -> None:
        """Close the connections; the webhook may be used again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _url(self) -> str:
        url = self._site_config.get_str(self._setting).strip()
        path = self._site_config.get_str(f"{self._setting}_file").strip()
        if url or not path:
            return url
        try:
            with open(path, encoding="utf-8") as file:
                return file.read(4096).strip()
        except (OSError, ValueError) as exc:
            logger.warning("%s_file cannot be read: %s", self._setting, type(exc).__name__)
            return ""

    async def _wait_for_a_turn(self) -> None:
        free_at = max(self._paused_until, self._posted[0] + WINDOW_SECONDS)
        wait = free_at - self._clock()
        if wait > 0:
            await self._sleep(wait)
        self._posted.append(self._clock())

    async def _once(self, message: Mapping[str, Any]) -> tuple[str, bool]:
        """Why it was not taken, and whether another try may help soon."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                answer = await self._opened().post(self._url(), json=message)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError):
            return f"{self._setting} is not an address", False
        except (TimeoutError, httpx.HTTPError) as exc:
            return type(exc).__name__, True
        self._heed(answer)
        if answer.is_success:
            return "", False
        again = answer.status_code == 429 or answer.status_code >= 500
        return f"status {answer.status_code}", again

    def _heed(self, answer: httpx.Response) -> None:
        pauses = [0.0]
        if answer.status_code == 429:
            pauses += [_seconds(answer.headers.get("retry-after")), _seconds(_retry_after(answer))]
            if not any(pauses):
                pauses.append(1.0)
        if answer.headers.get("x-ratelimit-remaining", "").strip() == "0":
            pauses.append(_seconds(answer.headers.get("x-ratelimit-reset-after")))
        self._paused_until = max(self._paused_until, self._clock() + max(pauses))

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            for name in _WIRE_LOGGERS:
                logging.getLogger(name).addFilter(_REDACTING)
            # An operator's own address: not guarded as pages are, and no proxy from outside.
            self._client = httpx.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=TIMEOUT_SECONDS
            )
        return self._client


def _retry_after(answer: httpx.Response) -> object:
    try:
        body = answer.json()
    except ValueError:
        return None
    return body.get("retry_after") if isinstance(body, dict) else None


def _seconds(value: object) -> float:
    """A pause given as a number or its text; 0 for anything else."""
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_PAUSE) if math.isfinite(seconds) else 0.0
