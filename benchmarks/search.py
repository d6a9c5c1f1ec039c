"""What the search chain costs over a raw call of the ddgs client: `python benchmarks/search.py`.

Both ask the same server, on loopback in a process of its own, for the same page, in turn, so that
whatever else the machine does falls on both. Printed are medians and their ratios; the figure that
matters is the difference, because a real engine takes hundreds of milliseconds where this one takes
less than one.

    raw     ddgs' DuckDuckGo engine in this process, as `DDGS.text` calls it: no timeout that holds
    job     the same request in a killable worker process, with the page read
    chain   `SearchChain.search` on top: deadline, circuit, rate limit, outcome
    cached  `SearchChain.search` when the search is stored
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from ddgs.engines.duckduckgo import Duckduckgo

from citeflow.search import SearchChain
from citeflow.search.duckduckgo import DuckDuckGoBackend
from citeflow.search.health import Health
from citeflow.settings import SiteConfig
from tests.support.engines import PlayedEngine, Reply, result, result_page, wrapped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from multiprocessing.connection import Connection

WARM_UP = 20
GOAL_MS = 5.0


def page() -> str:
    """Ten results with snippets of the usual length."""
    words = "Streaming responses send the body in pieces while it is being made, so that " * 3
    blocks = [
        result(f"Result {i}", wrapped(f"https://{i}.example/page?a={i}"), f"{i} {words}")
        for i in range(10)
    ]
    return result_page(blocks)


def serve(connection: Connection) -> None:
    """The engine, until the other side hangs up."""

    async def run() -> None:
        async with PlayedEngine(Reply(body=page())) as engine:
            connection.send(engine.url)
            await asyncio.to_thread(connection.recv)

    asyncio.run(run())


async def measure(
    ways: dict[str, Callable[[int], Awaitable[Any]]], rounds: int
) -> dict[str, float]:
    """Median milliseconds of each way, measured in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM_UP + rounds):
        for name, way in ways.items():
            started = time.perf_counter()
            await way(number)
            times[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(values[WARM_UP:]) for name, values in times.items()}


async def run(url: str, rounds: int) -> int:
    """Measure and print; the exit status says whether the overhead is within the goal."""

    class Raw(Duckduckgo):
        search_url = url

    free = {"web_research_ddg_requests_per_minute": 0}
    plain = SiteConfig({**free, "research_no_cache": "1"}, environ={})
    backend = DuckDuckGoBackend(plain, engine_url=url)
    chain = SearchChain(plain, backends=[backend], health=Health())
    with tempfile.TemporaryDirectory() as place:
        stored = SearchChain(
            SiteConfig({**free, "research_cache_dir": place}, environ={}),
            backends=[backend],
            health=Health(),
        )

        async def raw(number: int) -> None:
            found = Raw(timeout=10).search(f"query {number}")
            assert found
            assert len(found) == 10

        async def job(number: int) -> None:
            assert len((await backend.search(f"query {number}", 10, 10.0)).hits) == 10

        async def chained(number: int) -> None:
            assert len((await chain.search(f"query {number}", 10)).hits) == 10

        async def cached(number: int) -> None:
            assert (await stored.search("query", 10)).hits

        ways = {"raw": raw, "job": job, "chain": chained, "cached": cached}
        medians = await measure(ways, rounds)
    base = medians["raw"]
    print(f"{rounds} searches each, medians on one loopback server with one page of ten results")
    for name, value in medians.items():
        print(f"{name:8} {value:7.2f} ms   {value / base:5.2f} x raw   {value - base:+6.2f} ms")
    overhead = medians["chain"] - base
    print(f"overhead of the chain: {overhead:.2f} ms per search (goal: under {GOAL_MS:g} ms)")
    return 0 if overhead < GOAL_MS else 1


def main() -> int:
    """Start the server, measure, stop it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=200, help="searches each (default: 200)")
    rounds = parser.parse_args().rounds
    os.environ.pop("CITEFLOW_RESEARCH_NO_CACHE", None)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    server.start()
    try:
        return asyncio.run(run(ours.recv(), rounds))
    finally:
        ours.send(None)
        server.join(10)
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
