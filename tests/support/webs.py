"""Loopback webs for tests: a search endpoint like SearXNG's, and pages that behave as told."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

__all__ = ["article", "hanging_pages", "many_articles", "refusing_engine", "serving"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_WORDS = [
    "harbour",
    "granite",
    "ledger",
    "orchard",
    "beacon",
    "timber",
    "furnace",
    "meadow",
    "copper",
    "lantern",
    "archive",
    "canal",
    "quarry",
    "saddle",
    "pigment",
    "turbine",
    "bridge",
    "cellar",
    "glacier",
    "monsoon",
    "pendulum",
    "rivet",
    "spindle",
    "thicket",
    "valley",
    "weaver",
    "anvil",
    "barley",
    "cinder",
    "drover",
    "estuary",
    "fathom",
    "gantry",
    "hollow",
    "inlet",
    "jetty",
    "kiln",
    "loom",
]


@contextlib.asynccontextmanager
async def serving(routes: dict[str, Handler]) -> AsyncIterator[str]:
    """A server with these GET routes; yields its origin."""
    app = web.Application()
    for path, handler in routes.items():
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def refusing_engine(status: int) -> contextlib.AbstractAsyncContextManager[str]:
    """A search engine that answers every search with this status."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="no")

    return serving({"/search": refuse})


def _results(origin: str, paths: list[str], topic: str) -> web.Response:
    rng = random.Random(topic)
    return web.json_response(
        {
            "results": [
                {
                    "title": f"{topic} {path}",
                    "url": f"{origin}{path}",
                    "content": " ".join(rng.sample(_WORDS, 14)) + ".",
                }
                for path in paths
            ]
        }
    )


def hanging_pages() -> contextlib.AbstractAsyncContextManager[str]:
    """An engine whose one result is a page that never answers."""

    async def search(request: web.Request) -> web.StreamResponse:
        origin = f"http://{request.host}"
        return _results(origin, ["/page"], request.query["q"])

    async def page(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        return web.Response()

    return serving({"/search": search, "/page": page})


def article(topic: str, number: int) -> str:
    """A page with a paragraph of its own between navigation and footer."""
    rng = random.Random(f"{topic} {number}")
    paragraphs = "".join(
        f"<p>{' '.join(rng.choices(_WORDS, k=60)).capitalize()}.</p>" for _ in range(4)
    )
    return (
        f"<html><head><title>{topic}</title></head><body><nav><a href='/'>Home</a></nav>"
        f"<article><h1>{topic}, part {number}</h1>{paragraphs}</article>"
        "<footer>Imprint</footer></body></html>"
    )


def many_articles(
    *, results: int = 3, delay: float = 0.0
) -> contextlib.AbstractAsyncContextManager[str]:
    """An engine that finds `results` articles for any topic, each `delay` seconds away."""

    async def search(request: web.Request) -> web.StreamResponse:
        topic = request.query["q"]
        paths = [f"/article/{number}?t={topic.replace(' ', '+')}" for number in range(results)]
        return _results(f"http://{request.host}", paths, topic)

    async def page(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(delay)
        text = article(request.query["t"], int(request.match_info["number"]))
        return web.Response(text=text, content_type="text/html")

    return serving({"/search": search, "/article/{number}": page})
