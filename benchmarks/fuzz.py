"""Random pages and responses: no exception, no slow step, no growing memory.

    python benchmarks/fuzz.py [--documents 10000] [--responses 1000] [--seed 0]

Documents are extracted in this process, so that every exception and the time of each is seen;
responses go through the whole fetch from a server on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import logging
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

from citeflow.fetch import PageFetcher
from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import ExtractRequest
from citeflow.fetch.extract import extract_page
from citeflow.settings import SiteConfig
from tests.support.page_soup import answer, page

SLOW_SECONDS = 2.0
# What caches, interned strings and the allocator may take once everything has been used.
GROWTH_BYTES = 60_000_000


def documents(count: int, seed: int) -> bool:
    """Extract random pages; False when one was slow or memory grew."""
    process, today = psutil.Process(), datetime.date(2026, 1, 1)
    slowest, settled = 0.0, 0
    kinds: Counter[str] = Counter()
    for number in range(count):
        rng = random.Random(f"{seed}.{number}")
        kind = rng.choice((Kind.HTML, Kind.HTML, Kind.HTML, Kind.HTML, Kind.TEXT, Kind.PDF))
        started = time.process_time()
        found = extract_page(ExtractRequest(page(rng), kind, "", 2000, today))
        slowest = max(slowest, time.process_time() - started)
        kinds[found.readability.value] += 1
        if number == count // 5:
            settled = process.memory_info().rss
    growth = process.memory_info().rss - settled
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} documents: {dict(kinds)}")
    print(f"  slowest {slowest:.2f} s, RSS +{growth / 1e6:.1f} MB after the first fifth")
    print(f"  peak {peak:.0f} MB")
    return slowest < SLOW_SECONDS and growth < GROWTH_BYTES


async def responses(count: int, seed: int) -> bool:
    """Fetch random responses; False when one was an unforeseen error or slow."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.read(4096)
        path = head.split(b" ")[1] if head.count(b" ") > 1 else b"/0"
        rng = random.Random(f"{seed}.{path!r}")
        writer.write(answer(rng, page(rng)))
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    config = SiteConfig(
        {
            "fetch_allowed_internal_origins": origin,
            "fetch_host_interval_ms": 0,
            "fetch_host_concurrency": 8,
            "web_research_fetch_timeout_seconds": 60.0,
        }
    )
    async with server, PageFetcher(config) as fetcher:
        found = await asyncio.gather(*(fetcher.fetch(f"{origin}/{n}") for n in range(count)))
    kinds = Counter(outcome.status.value for outcome in found)
    print(f"{count} responses: {dict(kinds)}")
    return not kinds["error"]


def main() -> int:
    """Run both; 1 when something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--responses", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    fine = documents(arguments.documents, arguments.seed)
    fine = asyncio.run(responses(arguments.responses, arguments.seed)) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
