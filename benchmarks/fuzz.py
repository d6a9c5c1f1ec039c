"""Random pages and responses by Hypothesis: no exception, no slow step, no growing memory.

    python benchmarks/fuzz.py [--documents 10000] [--responses 1000] [--seed 0]

Documents are extracted in worker processes with the limits that they have in use; each page's CPU
time and the memory of the workers are reported by themselves. Responses go through the whole fetch
from a server on loopback. libxml2 keeps every name of an element or attribute that it has met, and
random pages invent names all the time: a worker grows until it is replaced, the next begins anew.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import gc
import logging
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path

import msgspec
import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

from citeflow.fetch import PageFetcher
from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import ExtractRequest
from citeflow.fetch.limits import EXTRACT_LIMITS
from citeflow.settings import SiteConfig
from citeflow.workers import WorkerError, WorkerPool
from tests.support.page_soup import answers, drawn, pages

SLOW_SECONDS = 2.0
# What the allocator may hold on to in this process, and in a worker beyond the one before it.
GROWTH_BYTES = 40_000_000
KINDS = (Kind.HTML, Kind.HTML, Kind.HTML, Kind.HTML, Kind.TEXT, Kind.PDF)


async def documents(count: int, seed: int) -> bool:
    """Extract random pages; False when one failed or was slow, or memory grew."""
    pool = WorkerPool(
        "tests.support.extract_targets:extract_measured",
        size=os.cpu_count() or 1,
        max_jobs_per_worker=EXTRACT_LIMITS.jobs_per_worker,
        max_worker_bytes=EXTRACT_LIMITS.worker_resident_bytes,
        memory_limit_bytes=EXTRACT_LIMITS.worker_memory_bytes,
    )
    endings: Counter[str] = Counter()
    held: defaultdict[int, list[int]] = defaultdict(list)  # by worker
    slowest, parent = 0.0, []

    async def extract(number: int, page: bytes) -> None:
        nonlocal slowest
        today = datetime.date(2026, 1, 1)
        request = ExtractRequest(page, KINDS[number % len(KINDS)], "", 2000, today)
        try:
            answer = await pool.run(msgspec.msgpack.encode(request), timeout=60)
        except WorkerError as exc:
            endings[f"FAILED {exc}"] += 1
            return
        ending, seconds, pid, resident = msgspec.msgpack.decode(answer)
        endings[ending] += 1
        slowest = max(slowest, seconds)
        held[pid].append(resident)

    portion: list[asyncio.Task[None]] = []
    for number, page in enumerate(drawn(pages(), count, seed)):
        portion.append(asyncio.create_task(extract(number, page)))
        if len(portion) == 250:
            await asyncio.gather(*portion)
            portion.clear()
            gc.collect()
            parent.append(psutil.Process().memory_info().rss)
    await asyncio.gather(*portion)
    pool.close()
    lives = [max(life) for life in held.values() if len(life) > 50] or [0]
    half = (len(lives) + 1) // 2
    early, late = max(lives[:half]), max(lives[half:] or [0])
    growth = max(parent[len(parent) // 5 :], default=0) - parent[len(parent) // 5] if parent else 0
    print(f"{count} documents: {dict(endings)}")
    print(f"  slowest {slowest:.2f} s of CPU; this process +{growth / 1e6:.1f} MB")
    print(
        f"  {len(held)} workers, each at most {max(lives) / 1e6:.0f} MB; "
        f"the first half of them {early / 1e6:.0f} MB, the second {late / 1e6:.0f} MB"
    )
    flat = growth < GROWTH_BYTES and late - early < GROWTH_BYTES
    return flat and slowest < SLOW_SECONDS and not any(e.startswith("FAILED") for e in endings)


async def responses(count: int, seed: int) -> bool:
    """Fetch random responses; False when one was an unforeseen error, or memory grew."""
    made = list(drawn(answers(), count, seed))
    count = len(made)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.read(4096)
        path = head.split(b" ")[1] if head.count(b" ") > 1 else b"/0"
        number = path.removeprefix(b"/")
        writer.write(made[int(number) % count] if number.isdigit() else made[0])
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
        kinds: Counter[str] = Counter()
        held = []
        for start in range(0, count, 100):
            numbers = range(start, min(start + 100, count))
            found = await asyncio.gather(*(fetcher.fetch(f"{origin}/{n}") for n in numbers))
            kinds.update(outcome.status.value for outcome in found)
            gc.collect()
            held.append(psutil.Process().memory_info().rss)
    growth = max(held) - held[len(held) // 5]
    print(f"{count} responses: {dict(kinds)}")
    print(f"  this process +{growth / 1e6:.1f} MB")
    return not kinds["error"] and growth < GROWTH_BYTES


def main() -> int:
    """Run both; 1 when something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--responses", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    fine = asyncio.run(documents(arguments.documents, arguments.seed))
    fine = asyncio.run(responses(arguments.responses, arguments.seed)) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
