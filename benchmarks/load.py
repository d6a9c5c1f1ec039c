"""A thousand fetches at once: how long the event loop is held, and the throughput.

The loop is held while something else does not let it turn: by the clock, which on a busy machine is
also what other programs take, and by the CPU time of the loop's thread within one such span. That
is measured in a run of its own, for looking costs a part of the throughput.

    python benchmarks/load.py [--fetches 1000] [--latency 0.3] [--at-once 64]

The server runs in a process of its own. The bound is `at-once / latency` pages per second; 64 are
read at once by a worker with the default settings (`stream_max_fetches_in_flight`).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import subprocess
import sys
import time

from citeflow.fetch import PageFetcher
from citeflow.settings import SiteConfig

PAGE = (
    "<html><head><title>Cells</title></head><body><article>"
    + "<p>Lithium cells lose capacity when repeatedly charged above eighty percent.</p>" * 10
    + "</article></body></html>"
)
_SERVER = """
import asyncio, sys
page = sys.argv[2].encode()
head = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\n"
head += b"Content-Length: %d\\r\\n\\r\\n" % len(page)
async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\\r\\n\\r\\n"):
            await asyncio.sleep(float(sys.argv[1]))
            writer.write(head + page)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


async def measure(
    origin: str, fetches: int, at_once: int, *, watch: bool
) -> tuple[float, float, float, int]:
    """Seconds in all, longest time the loop was held by the clock and in CPU time, pages read.

    The loop is looked at with `watch` only.
    """
    config = SiteConfig(
        {
            "fetch_allowed_internal_origins": origin,
            "fetch_host_concurrency": at_once,
            "fetch_host_interval_ms": 0,
            "web_research_fetch_timeout_seconds": 120.0,
        }
    )
    held = held_cpu = 0.0

    async def tick() -> None:
        nonlocal held, held_cpu
        while True:
            before, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.002)
            held = max(held, time.perf_counter() - before - 0.002)
            held_cpu = max(held_cpu, time.thread_time() - worked)

    async with PageFetcher(config) as fetcher:
        await asyncio.gather(*(fetcher.fetch(f"{origin}/warm/{n}") for n in range(at_once)))
        gc.collect()
        gc.freeze()  # as a worker does
        ticker = asyncio.create_task(tick()) if watch else None
        started = time.perf_counter()
        found = await asyncio.gather(*(fetcher.fetch(f"{origin}/{n}") for n in range(fetches)))
        seconds = time.perf_counter() - started
        if ticker is not None:
            ticker.cancel()
    return seconds, held, held_cpu, sum(outcome.ok for outcome in found)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fetches", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.3)
    parser.add_argument("--at-once", type=int, default=64)
    arguments = parser.parse_args()
    command = [sys.executable, "-c", _SERVER, str(arguments.latency), PAGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        origin = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            size = arguments.fetches, arguments.at_once
            seconds, _, _, read = asyncio.run(measure(origin, *size, watch=False))
            _, held, held_cpu, _ = asyncio.run(measure(origin, *size, watch=True))
        finally:
            server.kill()
    bound = arguments.at_once / arguments.latency
    rate = arguments.fetches / seconds
    print(f"{read} of {arguments.fetches} read in {seconds:.2f} s")
    print(f"{rate:.0f} pages/s of {bound:.0f} ({rate / bound:.0%})")
    print(f"loop held {held * 1000:.0f} ms, of CPU time {held_cpu * 1000:.0f} ms")


if __name__ == "__main__":
    main()
