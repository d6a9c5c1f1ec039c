"""Captured real pages through the whole stream: 20 requests at once, on the embedded broker.

    python examples/real_pages.py PAGES [--requests 20] [--show 0]

PAGES is a folder with `gold.json` (a list of objects with `file`, `url`, `title`, `articleBody`)
and the gzipped pages it names. They are served on loopback as the results of a search: topics are
made from their titles, and a search finds the pages that share words with the topic.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import web

import schemas
from citeflow.settings import SiteConfig
from streams.config import StreamConfig
from streams.dev import development_line
from streams.log_reader import contexts
from streams.produce import produce

RESULTS = 5


class Pages:
    """The captured pages as a small web with a search."""

    def __init__(self, folder: Path) -> None:
        self.bodies: list[bytes] = []
        self.titles: list[str] = []
        self.snippets: list[str] = []
        for entry in json.loads((folder / "gold.json").read_text("utf-8")):
            lines = [line for line in (entry.get("articleBody") or "").splitlines() if line.strip()]
            title = entry.get("title") or (lines[0] if lines else "")
            text = " ".join(lines) or " ".join(entry.get("must_contain") or [])
            if not title or len(text.split()) < 15:
                continue
            self.bodies.append(gzip.decompress((folder / entry["file"]).read_bytes()))
            self.titles.append(" ".join(title.split())[:150])
            self.snippets.append(" ".join(text.split()[:40]))

    def find(self, topic: str) -> list[int]:
        """Pages by how many words they share with the topic; those that share none come last."""
        wanted = _words(topic)
        return sorted(
            range(len(self.titles)),
            key=lambda n: -len(wanted & _words(f"{self.titles[n]} {self.snippets[n]}")),
        )

    async def search(self, request: web.Request) -> web.Response:
        """SearXNG's JSON."""
        results = [
            {
                "title": self.titles[number],
                "url": f"http://{request.host}/page/{number}",
                "content": self.snippets[number],
            }
            for number in self.find(request.query["q"])[: RESULTS * 2]
        ]
        return web.json_response({"results": results})

    async def page(self, request: web.Request) -> web.Response:
        """A page as captured; its charset is for the reader to find out."""
        body = self.bodies[int(request.match_info["number"])]
        return web.Response(body=body, headers={"Content-Type": "text/html"})


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


async def run(folder: Path, requests: int, show: int) -> None:
    """Serve the pages, send the requests, report what came back."""
    pages = Pages(folder)
    app = web.Application()
    app.router.add_get("/search", pages.search)
    app.router.add_get("/page/{number}", pages.page)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    config = SiteConfig(
        {
            "web_research_backends": "searxng",
            "web_research_searxng_url": origin,
            "fetch_allowed_internal_origins": origin,
        }
    )
    topics = pages.titles[:requests]
    records = [
        (None, schemas.encode(schemas.TopicRequested(topic=topic, max_results=RESULTS)))
        for topic in topics
    ]
    found: list[schemas.ContextReady] = []
    async with development_line(StreamConfig.from_env(), config, demo=False) as (local, _):
        started = time.perf_counter()
        await produce(local.broker, "topics.requested", records)
        async with asyncio.timeout(120):
            async for context in contexts(local.broker, follow=True):
                found.append(context)
                if len(found) == len(topics):
                    break
        seconds = time.perf_counter() - started
    await runner.cleanup()
    _report(found, seconds)
    if found:
        print(f"\nThe corpus for {found[show].topic!r}:\n\n{found[show].corpus}")


def _report(found: list[schemas.ContextReady], seconds: float) -> None:
    searched = sum(context.counts.searched for context in found)
    read = sum(context.counts.pages_read for context in found)
    cited = sum(context.counts.sources for context in found)
    outcomes: Counter[Any] = Counter(context.outcome.value for context in found)
    drops = Counter(drop.reason for context in found for drop in context.dropped)
    print(f"{len(found)} contexts in {seconds:.1f} s: {dict(outcomes)}")
    print(f"{searched} pages found, {read} read, {cited} cited; dropped: {dict(drops)}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", type=Path)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--show", type=int, default=0, help="which context's corpus to print")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.pages, arguments.requests, arguments.show))


if __name__ == "__main__":
    main()
