"""DuckDuckGo, its lite version, SearXNG and Brave on loopback, and a chain that asks them."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citeflow.search import SearchChain
from citeflow.search.brave import BraveBackend
from citeflow.search.ddg_lite import DdgLiteBackend
from citeflow.search.duckduckgo import DuckDuckGoBackend
from citeflow.search.health import Health
from citeflow.search.searxng import SearxngBackend
from citeflow.settings import SiteConfig
from tests.support.engines import PlayedEngine, Reply, Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from citeflow.workers import WorkerPool

__all__ = [
    "LITE_NOTHING_FOUND",
    "PlayedWeb",
    "brave_body",
    "lite_page",
    "lite_result",
    "played_web",
    "searxng_body",
    "threaded_engine",
    "unlimited",
]

_LITE_HEAD = (
    '<!DOCTYPE html><html><head><title>DuckDuckGo</title></head><body><form action="/lite/">'
)

LITE_NOTHING_FOUND = (
    _LITE_HEAD + "<input name='q' value='No results.'></form><table border='0'>"
    "<tr><td><span class='no-results'>No results.</span></td></tr></table></body></html>"
)


def lite_result(
    title: str,
    href: str,
    snippet: str | None = "A snippet.",
    *,
    quote: str = "'",
    class_first: bool = False,
    sponsored: bool = False,
) -> str:
    """The rows of one result, as the lite version has them, in either order of attributes."""
    link = f"href={quote}{html.escape(href)}{quote}"
    name = f"class={quote}result-link{quote}"
    attributes = f"{name} {link}" if class_first else f"{link} {name}"
    row = "<tr class='result-sponsored'>" if sponsored else "<tr>"
    rows = (
        f"{row}<td valign='top'>1.&nbsp;</td><td><a rel='nofollow' {attributes}>"
        f"{html.escape(title)}</a></td></tr>"
    )
    if snippet is not None:
        rows += (
            f"{row}<td>&nbsp;</td><td class={quote}result-snippet{quote}>"
            f"{html.escape(snippet)}</td></tr>"
        )
    return rows + f"{row}<td></td><td><span class='link-text'>shown.example</span></td></tr>"


def lite_page(rows: Sequence[str]) -> str:
    """A page of the lite version with these rows."""
    return f"{_LITE_HEAD}</form><table border='0'>{''.join(rows)}</table></body></html>"


def searxng_body(
    results: Sequence[tuple[str, str, str]] = (), unresponsive: Sequence[Any] = ()
) -> str:
    """SearXNG's JSON for title, url and content of each result."""
    listed = [{"title": t, "url": u, "content": c, "engine": "x"} for t, u, c in results]
    return json.dumps({"query": "q", "results": listed, "unresponsive_engines": unresponsive})


def brave_body(results: Sequence[tuple[str, str, str]] = ()) -> str:
    """Brave's JSON for title, url and description of each result."""
    listed = [{"title": t, "url": u, "description": d} for t, u, d in results]
    web = {"web": {"type": "search", "results": listed}} if results else {}
    return json.dumps({"type": "search", "query": {"original": "q"}, **web})


def unlimited(values: Mapping[str, object] | None = None) -> SiteConfig:
    """Settings without rate limits and without back-off, with `values` on top."""
    free = {
        "web_research_ddg_requests_per_minute": 0,
        "web_research_brave_requests_per_minute": 0,
        "web_research_ddg_retry_base_delay_ms": 0,
    }
    return SiteConfig({**free, **(values or {})}, environ={})


@dataclass
class PlayedWeb:
    """The four engines, and the chain in the default order; those not configured are left out."""

    ddg: PlayedEngine
    lite: PlayedEngine
    searxng: PlayedEngine
    brave: PlayedEngine
    chain: SearchChain
    health: Health

    @property
    def engines(self) -> list[PlayedEngine]:
        return [self.ddg, self.lite, self.searxng, self.brave]

    @property
    def requests(self) -> list[Request]:
        """All requests, engine by engine."""
        return [request for engine in self.engines for request in engine.requests]


Answer = Reply | Callable[[Request], Reply] if TYPE_CHECKING else Any


@contextlib.asynccontextmanager
async def played_web(
    pool: WorkerPool,
    *,
    ddg: Answer = Reply(202),  # noqa: B008 - frozen
    lite: Answer = Reply(202),  # noqa: B008
    searxng: Answer | None = None,
    brave: Answer | None = None,
    config: SiteConfig | None = None,
    lite_pool: WorkerPool | None = None,
) -> AsyncIterator[PlayedWeb]:
    """The engines on loopback for the length of the block; SearXNG and Brave only if given."""
    async with contextlib.AsyncExitStack() as stack:
        engines = [
            await stack.enter_async_context(PlayedEngine(answer or Reply()))
            for answer in (ddg, lite, searxng, brave)
        ]
        values: dict[str, object] = {}
        if searxng is not None:
            values["web_research_searxng_url"] = engines[2].origin
        if brave is not None:
            values["brave_api_key"] = "key-0123456789"
        settings = (config or unlimited()).with_values(values)
        backends = [
            DuckDuckGoBackend(settings, engine_url=engines[0].url, pool=pool),
            DdgLiteBackend(settings, engine_url=engines[1].url, pool=lite_pool or pool),
            SearxngBackend(settings),
            BraveBackend(settings, api_url=f"{engines[3].origin}/res/v1/web/search"),
        ]
        for backend in backends:
            stack.push_async_callback(backend.aclose)
        health = Health()
        chain = SearchChain(settings, backends=backends, health=health)
        yield PlayedWeb(*engines, chain, health)


@contextlib.contextmanager
def threaded_engine(answer: Answer) -> Iterator[PlayedEngine]:
    """An engine on a loop in a thread of its own, for callers that block theirs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    engine = PlayedEngine(answer)

    def run(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(10)

    try:
        run(engine.__aenter__())
        yield engine
        run(engine.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
