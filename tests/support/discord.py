"""A loopback server that plays Discord: rate limits, refusals, slowness, dropped connections."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

__all__ = ["FakeDiscord", "playing_discord"]

TOKEN = "s3cr3t-webhook-t0ken"
POSTS, WINDOW = 5, 2.0


@dataclass
class FakeDiscord:
    """Answers from `script` first, then as Discord does.

    A step is a status; `drop` or `slow`, with nothing taken; `lost`, taken and the answer dropped;
    `ok`, as without a script. `accepted` holds the messages taken, with the time;
    `over_the_limit` counts requests beyond five in two seconds, which are answered with 429.
    """

    origin: str = ""
    script: collections.deque[int | str] = field(default_factory=collections.deque)
    retry_after: float = 0.2
    tell_in_header: bool = False
    for_everything: bool = False
    down: bool = False
    accepted: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    asked: int = 0
    over_the_limit: int = 0
    _recent: collections.deque[float] = field(default_factory=collections.deque)

    @property
    def url(self) -> str:
        """The address of the webhook, with its secret."""
        return f"{self.origin}/api/webhooks/1234/{TOKEN}"

    @property
    def embeds(self) -> list[dict[str, Any]]:
        """The embed of each message taken."""
        return [message["embeds"][0] for _, message in self.accepted]

    async def post(self, request: web.Request) -> web.StreamResponse:
        """One post."""
        self.asked += 1
        message = await request.json()
        if self.down:
            return web.Response(status=503)
        now = time.monotonic()
        while self._recent and now - self._recent[0] > WINDOW:
            self._recent.popleft()
        if len(self._recent) >= POSTS:
            self.over_the_limit += 1
            self.retry_after = WINDOW - (now - self._recent[0])
            return self._limited()
        self._recent.append(now)
        step = self.script.popleft() if self.script else "ok"
        if step == "lost":
            self.accepted.append((now, message))
        if step in ("drop", "lost"):
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if step == "slow":
            await asyncio.sleep(30)
        if step == 429:
            return self._limited()
        if isinstance(step, int):
            return web.Response(status=step)
        self.accepted.append((now, message))
        left = POSTS - len(self._recent)
        headers = {"X-RateLimit-Remaining": str(left)}
        headers["X-RateLimit-Reset-After"] = f"{WINDOW - (now - self._recent[0]):.3f}"
        return web.Response(status=204, headers=headers)

    def _limited(self) -> web.Response:
        if self.tell_in_header:
            headers = {"Retry-After": str(self.retry_after)}
            if self.for_everything:
                headers["X-RateLimit-Scope"] = "global"
            return web.Response(status=429, headers=headers)
        body = {"message": "You are being rate limited.", "retry_after": self.retry_after}
        return web.json_response({**body, "global": self.for_everything}, status=429)


@contextlib.asynccontextmanager
async def playing_discord() -> AsyncIterator[FakeDiscord]:
    """The server on a free loopback port."""
    discord = FakeDiscord()
    app = web.Application()
    app.router.add_post("/api/webhooks/{id}/{token}", discord.post)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    discord.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield discord
    finally:
        await runner.cleanup()
