"""What reading from HTTP/2 servers that send frames for ever costs.

    python benchmarks/floods.py [--check]

Each server is on loopback, in this process. Printed are how the fetch ended, the seconds until then
(of 10), the CPU time and memory (the server's included) and how long the event loop was held.
`--check` fails when a fetch nears its deadline or takes 50 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import sys
import time
from pathlib import Path

import psutil
import trustme

sys.path.insert(0, str(Path(__file__).parent.parent))

from citeflow.fetch import PageFetcher, connections
from citeflow.settings import SiteConfig
from tests.support.http2 import Http2Server
from tests.support.http2_floods import FLOODS
from tests.support.loopback import FakeNetwork

DEADLINE = 10.0


async def floods() -> bool:
    """Read from each server; False when one took the deadline or much memory."""
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def page_tls() -> ssl.SSLContext:
        return trusting

    connections.page_tls = page_tls  # type: ignore[assignment,unused-ignore]
    process, held, fine = psutil.Process(), 0.0, True

    async def tick() -> None:
        nonlocal held
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            held = max(held, time.perf_counter() - before - 0.001)

    ticker = asyncio.create_task(tick())
    for name, handler in FLOODS.items():
        certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("a.example").configure_cert(certificate)
        async with Http2Server(handler, certificate) as server:
            net = FakeNetwork({"a.example": [["1.1.1.1"]]}, {"1.1.1.1": server.port})
            config = SiteConfig({"fetch_respect_robots": False}, environ={})
            async with PageFetcher(config, resolve=net.resolve, dial=net) as reader:
                held, before = 0.0, process.memory_info().rss
                cpu, started = time.process_time(), time.perf_counter()
                outcome = await reader.fetch("https://a.example/", timeout=DEADLINE)
                seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
                grown = (process.memory_info().rss - before) / 1e6
        fine = fine and seconds < 0.9 * DEADLINE and grown < 50
        print(
            f"{name:24} {outcome.status.value:14} {seconds:.2f} s  CPU {cpu:.3f} s  "
            f"{grown:+.0f} MB  loop held {held * 1000:.0f} ms"
        )
    ticker.cancel()
    return fine


def main() -> int:
    """Run the benchmark; 1 when a flood costs too much and `--check` is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a flood costs too much")
    arguments = parser.parse_args()
    return 0 if asyncio.run(floods()) or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
