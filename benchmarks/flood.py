"""A flood of requests with slow pages: how much memory does a worker take, is each answered?

    python -m benchmarks.flood                     # 2,000 requests, half a minute or so
    python -m benchmarks.flood --requests 20000

All requests are on Kafka before the worker starts. Its resident memory, and that of the processes
it has started, are read from /proc (Linux) four times a second. Exit code 1 when the worker took
more than --bound, or a request was not answered within --patience seconds. Loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from aiohttp import web

from benchmarks.chaos import serving
from benchmarks.local_broker import BROKERS, local_broker
from streams.config import StreamConfig
from streams.log_reader import contexts
from streams.produce import produce
from streams.runner import wait_for_topics

PARTITIONS = 8
MIB = 1 << 20
TEXT = " ".join(f"The lantern at quay {number} was lit by the master." for number in range(40))


class SlowWeb:
    """Two results for anything, each a page that takes `delay` seconds."""

    def __init__(self, delay: float) -> None:
        self._delay = delay

    async def search(self, request: web.Request) -> web.Response:
        """SearXNG's JSON."""
        topic = request.query["q"]
        page = f"http://{request.host}/page/{topic.replace(' ', '-')}"
        return web.json_response(
            {
                "results": [
                    {
                        "title": f"{topic}, part {part}",
                        "url": f"{page}/{part}",
                        "content": f"All about {topic}, its lanterns and quays, part {part} of two",
                    }
                    for part in range(2)
                ]
            }
        )

    async def page(self, request: web.Request) -> web.StreamResponse:
        """Some kilobytes of text."""
        await asyncio.sleep(self._delay)
        html = f"<html><body><article><h1>{request.path}</h1><p>{TEXT}</p></article></body></html>"
        return web.Response(text=html, content_type="text/html")


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _children(int(child))


async def _watch(pid: int, largest: dict[str, int]) -> None:
    while True:
        own = _resident(pid)
        largest["worker"] = max(largest["worker"], own)
        family = own + sum(_resident(child) for child in _children(pid))
        largest["with its processes"] = max(largest["with its processes"], family)
        await asyncio.sleep(0.25)


async def _answers(broker: str, count: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    async for context in contexts(broker, follow=True):
        outcomes[context.outcome.value] += 1
        if outcomes.total() % 1000 == 0:
            print(f"{outcomes.total()} answered", file=sys.stderr)
        if outcomes.total() == count:
            break
    return outcomes


def environment(kind: str, broker: str, origin: str) -> Mapping[str, str]:
    """What a worker on this broker runs under, with the local web as its whole web."""
    return {name: value for name, value in os.environ.items() if "CITEFLOW_" not in name} | {
        "CITEFLOW_BROKER": broker,
        "CITEFLOW_PARTITIONS": str(PARTITIONS),
        "CITEFLOW_BROKER_PROFILE": kind,
        "CITEFLOW_WEB_RESEARCH_BACKENDS": "searxng",
        "CITEFLOW_WEB_RESEARCH_SEARXNG_URL": origin,
        "CITEFLOW_FETCH_ALLOWED_INTERNAL_ORIGINS": origin,
        # The local web stands for many hosts.
        "CITEFLOW_FETCH_HOST_CONCURRENCY": "64",
        "CITEFLOW_FETCH_HOST_INTERVAL_MS": "0",
        "CITEFLOW_RESEARCH_NO_CACHE": "1",
    }


async def run(arguments: argparse.Namespace) -> int:
    """One flood; returns the exit code."""
    largest = {"worker": 0, "with its processes": 0}
    async with local_broker(arguments.broker) as broker:
        await wait_for_topics(StreamConfig(broker=broker, partitions=PARTITIONS))
        requests = [
            (b"r%05d" % number, json.dumps({"topic": f"harbour {number}"}).encode())
            for number in range(arguments.requests)
        ]
        await produce(broker, "topics.requested", requests)
        async with serving(SlowWeb(arguments.delay)) as origin:
            started = time.monotonic()
            worker = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "streams", "worker",
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment(arguments.broker, broker, origin),
            )  # fmt: skip
            watching = asyncio.create_task(_watch(worker.pid, largest))
            try:
                async with asyncio.timeout(arguments.patience):
                    outcomes = await _answers(broker, arguments.requests)
            except TimeoutError:
                print("not every request was answered in time")
                return 1
            finally:
                watching.cancel()
                if worker.returncode is None:
                    worker.kill()
                await worker.wait()
            seconds = time.monotonic() - started
    print(f"{arguments.requests} requests in {seconds:.0f} s, {dict(outcomes)}")
    for name, size in largest.items():
        print(f"largest resident memory, {name}: {size / MIB:.0f} MiB")
    return 0 if largest["worker"] < arguments.bound * MIB else 1


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broker", choices=BROKERS, default="embedded")
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds that a page takes")
    parser.add_argument("--bound", type=float, default=400, help="MiB that the worker may take")
    parser.add_argument("--patience", type=float, default=3_000, help="seconds to wait")
    sys.exit(asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
