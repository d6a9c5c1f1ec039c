"""`/healthz`, `/readyz` and `/metrics`: whether the worker lives, works, and how much."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping

from aiohttp import web

from streams.metrics import CONTENT_TYPE

__all__ = ["serving_health"]


@contextlib.asynccontextmanager
async def serving_health(
    port: int,
    unready: Callable[[], Mapping[str, str]],
    metrics: Callable[[], bytes],
    *,
    host: str = "127.0.0.1",
) -> AsyncIterator[int]:
    """Serve them on `port` (0: a free one) for the length of the block; yields the port.

    `/healthz` answers 200 while the event loop runs: a worker that is stuck ends by itself.
    `/readyz` answers 200 when every application has its partitions and its states, 503 with the
    reasons otherwise. `/metrics` answers with `metrics()`, for Prometheus.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        reasons = dict(unready())
        return web.json_response(
            {"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200
        )

    async def measured(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", measured)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
