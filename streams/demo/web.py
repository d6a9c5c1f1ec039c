"""Serving the sample web: its pages, and a search that answers like SearXNG's JSON API."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Self

from aiohttp import web

from streams.demo.catalogue import Page, find_pages, load_pages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

__all__ = ["DemoWeb"]

# Visitors of a demo do not wait for a slow client when it ends.
_SHUTDOWN_SECONDS = 1.0


class DemoWeb:
    """The sample web while the block runs.

        async with DemoWeb() as demo:
            config = SiteConfig({
                "web_research_backends": "searxng",
                "web_research_searxng_url": demo.search_url,
                "fetch_allowed_internal_origins": demo.origin,
            })

    `port` 0 takes a free one. `origin` is `http://host:port`, `search_url` the search endpoint
    (`GET /search?q=...&format=json`). Requests are not logged.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host = host
        self._port = port
        self._pages = load_pages()
        self._runner: web.AppRunner | None = None
        self.origin = ""

    @property
    def search_url(self) -> str:
        """The address of the search endpoint; fits the setting `web_research_searxng_url`."""
        return f"{self.origin}/search"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/", self._front_page)
        app.router.add_get("/search", self._search)
        for page in self._pages:
            app.router.add_get(page.path, _handler(page))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError:
            await self._runner.cleanup()
            raise
        port = self._runner.addresses[0][1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.origin = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _front_page(self, _request: web.Request) -> web.Response:
        links = "".join(
            f'<li><a href="{page.path}">{html.escape(page.title)}</a></li>' for page in self._pages
        )
        body = f"<!doctype html><title>Backend Field Notes</title><ul>{links}</ul>"
        return web.Response(text=body, content_type="text/html", charset="utf-8")

    async def _search(self, request: web.Request) -> web.Response:
        query = request.query.get("q", "")
        found = find_pages(self._pages, query)
        results = [
            {"title": page.title, "url": self.origin + page.path, "content": page.snippet}
            for page in found
        ]
        return web.json_response(
            {
                "query": query,
                "number_of_results": len(results),
                "results": results,
                "unresponsive_engines": [],
            }
        )


def _handler(page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def serve(_request: web.Request) -> web.StreamResponse:
        return web.Response(
            status=page.status, text=page.html, content_type="text/html", charset="utf-8"
        )

    return serve
