"""Reading the open web under attack and under load, on real loopback servers."""

from __future__ import annotations

import asyncio
import gc
import gzip
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from citeflow.fetch import FetchStatus, PageFetcher
from citeflow.settings import SiteConfig
from tests.support.loopback import FakeNetwork, LoopbackServer, response, serving

TEXT = "Lithium cells lose capacity when repeatedly charged above eighty percent."
PAGE = response(f"<html><body><p>{TEXT}</p></body></html>")
PUBLIC = "93.184.216.34"

FORBIDDEN = [
    "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0x7f000001", "017700000001",
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "198.18.0.1",
    "192.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "0.0.0.0", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::7f00:1]", "[fec0::1]",
    "[fe80::1%25eth0]", "[fe80::1]", "[fc00::1]", "[ff02::1]", "[2001:db8::1]",
]  # fmt: skip


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_forbidden_addresses_see_no_connection(host: str) -> None:
    """Directly, on any port, and by a redirect from a public page: refused, nothing dialled."""
    async with serving({"/": PAGE}) as secret:
        location = [("Location", f"http://{host}/")]
        async with serving({"/": response(status="302 Found", headers=location)}) as public:
            routes = {h.strip("[]"): secret.port for h in FORBIDDEN} | {PUBLIC: public.port}
            net = FakeNetwork({"a.example": [[PUBLIC]], "localhost": [["127.0.0.1"]]}, routes)
            config = SiteConfig({"fetch_respect_robots": False}, environ={})
            async with PageFetcher(config, resolve=net.resolve, dial=net) as reader:
                urls = (f"http://{host}/", f"https://{host}/", f"http://{host}:{secret.port}/")
                direct = [await reader.fetch(url) for url in urls]
                moved = await reader.fetch("http://a.example/")
    refused = {FetchStatus.BLOCKED, FetchStatus.BAD_URL}
    assert {outcome.status for outcome in [*direct, moved]} <= refused
    assert (secret.connections, net.dialled) == (0, [PUBLIC])


@pytest.mark.parametrize("address", ["1.1.1.1", "[2606:4700:4700::1111]"])
async def test_public_addresses_are_read(address: str) -> None:
    """Of both families."""
    async with serving({"/": PAGE}) as server:
        net = FakeNetwork({}, {address.strip("[]"): server.port})
        config = SiteConfig({"fetch_respect_robots": False}, environ={})
        async with PageFetcher(config, resolve=net.resolve, dial=net) as reader:
            assert (await reader.fetch(f"http://{address}/")).text == TEXT


async def test_the_article_behind_a_long_navigation_is_found() -> None:
    """300 kB of which the first 60 are menus."""
    menu = "<ul>" + "<li><a href=/x>Another section of the site</a></li>" * 1200 + "</ul>"
    article = "".join(f"<p>{TEXT} Paragraph number {n}.</p>" for n in range(2500))
    page = f"<html><body><div>{menu}</div><article>{article}</article></body></html>"
    assert len(menu) > 60_000
    assert len(page) > 290_000
    async with serving({"/": response(page)}) as server:
        config = SiteConfig({"fetch_allowed_internal_origins": server.origin}, environ={})
        async with PageFetcher(config) as reader:
            outcome = await reader.fetch(f"{server.origin}/")
    assert outcome.text.startswith(f"{TEXT} Paragraph number 0.")
    assert "Another section" not in outcome.text


async def test_a_bomb_takes_no_memory() -> None:
    """300 MB in a small gzip under a cap of 400 kB: the program grows by less than 20 MB."""
    bomb = gzip.compress(b"word " * 60_000_000, 9)
    server = serving({"/": response(bomb, headers=[("Content-Encoding", "gzip")])})
    async with server:
        values = {
            "fetch_allowed_internal_origins": server.origin,
            "fetch_max_body_bytes": 400_000,
        }
        async with PageFetcher(SiteConfig(values, environ={})) as reader:
            await reader.fetch(f"{server.origin}/none")
            gc.collect()
            before = psutil.Process().memory_info().rss
            outcome = await reader.fetch(f"{server.origin}/")
            growth = psutil.Process().memory_info().rss - before
    assert outcome.status is FetchStatus.TOO_LARGE
    assert growth < 20_000_000


@pytest.mark.parametrize("piece", ["<script>", "<", "<meta ", "<div>"])
async def test_hostile_pages_are_bounded_through_the_whole_fetch(piece: str) -> None:
    """400 kB of openings are an outcome, and quickly."""
    async with serving({"/": response(piece * (400_000 // len(piece)))}) as server:
        config = SiteConfig({"fetch_allowed_internal_origins": server.origin}, environ={})
        async with PageFetcher(config) as reader:
            await reader.fetch(f"{server.origin}/none")
            started = time.monotonic()
            outcome = await reader.fetch(f"{server.origin}/")
    assert time.monotonic() - started < 5
    assert not outcome.ok


@pytest.mark.timeout(120)
async def test_a_thousand_fetches_at_once_leave_the_loop_free() -> None:
    """Throughput near what the limits allow, and nothing holds the event loop for long.

    The bounds are those of a hang, not of a benchmark: `benchmarks/load.py` measures.
    """

    async def slow(_path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(response(status="404 Not Found"))

    async with LoopbackServer(slow) as server:
        values = {
            "fetch_allowed_internal_origins": server.origin,
            "fetch_host_concurrency": 100,
            "fetch_host_interval_ms": 0,
            "web_research_fetch_timeout_seconds": 100.0,
        }
        async with PageFetcher(SiteConfig(values, environ={})) as reader:
            started = time.monotonic()
            found = await asyncio.gather(
                *(reader.fetch(f"{server.origin}/{n}") for n in range(1000))
            )
            seconds = time.monotonic() - started
    assert {outcome.http_status for outcome in found} == {404}
    assert seconds < 30


def test_random_pages_and_responses() -> None:
    """A short run of the fuzzer: no exception, nothing slow, nothing unforeseen."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "benchmarks/fuzz.py", "--documents", "150", "--responses", "100"],
        cwd=root, capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
