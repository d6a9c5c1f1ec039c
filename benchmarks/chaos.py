"""Requests through a line whose workers and broker are killed: is each answered exactly once?

    python -m benchmarks.chaos                         # 200 requests, 10 faults, embedded broker
    python -m benchmarks.chaos --broker kafka --requests 2000 --kills 50 --broker-restarts 3

Everything happens on loopback and is bounded in count and time. The faults follow from the seed:
SIGKILL, SIGTERM and SIGSTOP/SIGCONT of workers, workers that join and leave, restarts of the broker
(Apache Kafka only: the embedded one keeps everything in memory). The local web is slow, fails now
and then, and has pages that hang. Exit code 1 when the promise is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from aiohttp import web
from aiokafka import AIOKafkaProducer

from benchmarks.kafka_node import KafkaNode
from benchmarks.verdict import kept, verdict
from streams.config import StreamConfig
from streams.embedded import EmbeddedBroker
from streams.log_reader import contexts
from streams.runner import wait_for_topics

PARTITIONS = 8
WORDS = [
    "harbour",
    "granite",
    "ledger",
    "orchard",
    "beacon",
    "timber",
    "furnace",
    "meadow",
    "copper",
    "lantern",
    "canal",
]


@dataclass
class Web:
    """A search that finds three pages for anything; pages are slow, fail or hang by their name."""

    served: Counter[str] = field(default_factory=Counter)

    async def search(self, request: web.Request) -> web.Response:
        """SearXNG's JSON."""
        topic = request.query["q"]
        rng = random.Random(topic)
        return web.json_response(
            {
                "results": [
                    {
                        "title": f"{topic} {number}",
                        "url": f"http://{request.host}/page/{topic.replace(' ', '-')}/{number}",
                        "content": " ".join([*rng.choices(WORDS, k=8), topic, str(number), "end"]),
                    }
                    for number in range(3)
                ]
            }
        )

    async def page(self, request: web.Request) -> web.StreamResponse:
        """A page as slow, as large and as well as its address says."""
        self.served[request.path] += 1
        rng = random.Random(request.path)
        fate = rng.random()
        if fate < 0.01:
            await asyncio.sleep(3600)
        await asyncio.sleep(rng.uniform(0.01, 0.3))
        if fate < 0.05:
            return web.Response(status=503)
        size = rng.choice([60, 200, 2000])
        body = " ".join(rng.choices(WORDS, k=size)).capitalize()
        html = f"<html><body><article><h1>{request.path}</h1><p>{body}.</p></article></body></html>"
        return web.Response(text=html, content_type="text/html")


class Site(Protocol):
    """What answers searches and page requests."""

    async def search(self, request: web.Request) -> web.Response:
        """SearXNG's JSON."""

    async def page(self, request: web.Request) -> web.StreamResponse:
        """A page."""


@contextlib.asynccontextmanager
async def serving(site: Site) -> AsyncIterator[str]:
    """The web on a free loopback port."""
    app = web.Application()
    app.router.add_get("/search", site.search)
    app.router.add_get("/page/{topic}/{number}", site.page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Workers:
    """Worker processes that are started again when they end, unless they were let go."""

    def __init__(self, env: dict[str, str], log: Path) -> None:
        self._env = env
        self._log = log
        self._processes: list[asyncio.subprocess.Process] = []
        self.ended: Counter[str] = Counter()

    @property
    def running(self) -> list[asyncio.subprocess.Process]:
        """Those that have not ended."""
        return [process for process in self._processes if process.returncode is None]

    async def keep(self, count: int) -> None:
        """Start as many as are missing."""
        for process in self._processes:
            if process.returncode is not None:
                self.ended[str(process.returncode)] += 1
        self._processes = self.running
        while len(self._processes) < count:
            with self._log.open("ab") as log:
                self._processes.append(
                    await asyncio.create_subprocess_exec(
                        sys.executable, "-m", "streams", "worker",
                        stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=self._env,
                    )
                )  # fmt: skip

    def send(self, rng: random.Random, number: signal.Signals) -> asyncio.subprocess.Process | None:
        """A signal to one of them."""
        running = self.running
        if not running:
            return None
        process = rng.choice(running)
        process.send_signal(number)
        return process

    async def end(self) -> None:
        """Kill all."""
        for process in self.running:
            process.kill()
        await asyncio.gather(*(process.wait() for process in self._processes))


async def produce_all(
    broker: str, arguments: argparse.Namespace, rng: random.Random
) -> tuple[set[str], int]:
    """Send the requests over time; returns the ids of the valid ones and how many are not."""
    bad = [b"{", b'{"topic": 5}', b'{"topic": ""}', b"\xff", b'{"no": "topic"}']
    valid: set[str] = set()
    invalid = 0
    producer = AIOKafkaProducer(
        bootstrap_servers=broker, acks="all", max_batch_size=1, request_timeout_ms=120_000
    )
    await producer.start()
    try:
        for number in range(arguments.requests):
            if rng.random() < arguments.invalid:
                invalid += 1
                await producer.send_and_wait("topics.requested", rng.choice(bad), key=b"bad")
            else:
                name = f"request-{number:05}"
                value = json.dumps({"topic": f"topic {number}", "request_id": name}).encode()
                await producer.send_and_wait("topics.requested", value)
                valid.add(name)
            await asyncio.sleep(arguments.spread / arguments.requests)
    finally:
        await producer.stop()
    return valid, invalid


async def disturb(
    arguments: argparse.Namespace, rng: random.Random, workers: Workers, node: KafkaNode | None
) -> Counter[str]:
    """The faults, in an order and at moments that follow from the seed."""
    faults = ["kill"] * arguments.kills
    faults += ["term"] * max(1, arguments.kills // 5) + ["pause"] * max(1, arguments.kills // 5)
    faults += ["join"] * max(1, arguments.kills // 10) + ["leave"] * max(1, arguments.kills // 10)
    faults += ["broker"] * (arguments.broker_restarts if node else 0)
    rng.shuffle(faults)
    wanted = arguments.workers
    done: Counter[str] = Counter()
    for fault in faults:
        await workers.keep(wanted)
        await asyncio.sleep(rng.uniform(0.2, 2.0) * arguments.pace)
        done[fault] += 1
        if fault == "kill":
            workers.send(rng, signal.SIGKILL)
        elif fault == "term":
            workers.send(rng, signal.SIGTERM)
        elif fault == "pause":
            process = workers.send(rng, signal.SIGSTOP)
            await asyncio.sleep(rng.choice([0.5, 8.0]))
            if process is not None and process.returncode is None:
                process.send_signal(signal.SIGCONT)
        elif fault in ("join", "leave"):
            wanted = max(1, wanted + (1 if fault == "join" else -1))
            if fault == "leave":
                workers.send(rng, signal.SIGTERM)
        elif node is not None:
            await asyncio.to_thread(node.stop, kill=rng.random() < 0.5)
            await asyncio.to_thread(node.start)
    return done


async def wait_for_answers(
    broker: str, valid: set[str], workers: Workers, arguments: argparse.Namespace
) -> None:
    """Keep the workers going until every request is answered, or patience ends."""
    answered: set[str] = set()

    async def watch() -> None:
        async for context in contexts(broker, follow=True):
            answered.add(context.request_id)
            if answered >= valid:
                return

    watching = asyncio.create_task(watch())
    give_up = time.monotonic() + arguments.patience
    while not watching.done() and time.monotonic() < give_up:
        await workers.keep(arguments.workers)
        await asyncio.wait([watching], timeout=1)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def run(arguments: argparse.Namespace) -> int:
    """One run; returns the exit code."""
    rng = random.Random(arguments.seed)
    home = Path(tempfile.mkdtemp(prefix="citeflow-chaos-"))
    site = Web()
    node = KafkaNode(home) if arguments.broker == "kafka" else None
    embedded = EmbeddedBroker() if node is None else None
    broker = node.address if node is not None else embedded.address  # type: ignore[union-attr]
    started = time.monotonic()
    if node is not None:
        await asyncio.to_thread(node.start)
    elif embedded is not None:
        embedded.start()
        await embedded.wait_ready()
    try:
        config = StreamConfig(broker=broker, partitions=PARTITIONS, app_prefix="chaos")
        await wait_for_topics(config)
        async with serving(site) as origin:
            env = {name: value for name, value in os.environ.items() if "CITEFLOW_" not in name} | {
                "CITEFLOW_BROKER": broker,
                "CITEFLOW_PARTITIONS": str(PARTITIONS),
                "CITEFLOW_APP_PREFIX": "chaos",
                "CITEFLOW_SESSION_TIMEOUT": "3",
                "CITEFLOW_BROKER_PROFILE": "kafka" if node else "embedded",
                "CITEFLOW_WEB_RESEARCH_BACKENDS": "searxng",
                "CITEFLOW_WEB_RESEARCH_SEARXNG_URL": origin,
                "CITEFLOW_FETCH_ALLOWED_INTERNAL_ORIGINS": origin,
                "CITEFLOW_WEB_RESEARCH_FETCH_TIMEOUT_SECONDS": "3",
                # The local web stands for many hosts.
                "CITEFLOW_FETCH_HOST_CONCURRENCY": "64",
                "CITEFLOW_FETCH_HOST_INTERVAL_MS": "0",
                "CITEFLOW_RESEARCH_NO_CACHE": "1",
            }
            workers = Workers(env, home / "workers.log")
            try:
                await workers.keep(arguments.workers)
                producing = asyncio.create_task(produce_all(broker, arguments, rng))
                faults = await disturb(arguments, random.Random(arguments.seed + 1), workers, node)
                valid, invalid = await producing
                await wait_for_answers(broker, valid, workers, arguments)
            finally:
                await workers.end()
        report = await verdict(broker, valid, invalid)
        report["wasted_fetches"] = sum(site.served.values()) - len(site.served)
    finally:
        if node is not None:
            await asyncio.to_thread(node.stop)
        elif embedded is not None:
            embedded.stop()
    report["faults"] = dict(faults)
    report["exits"] = dict(workers.ended)
    report["seed"], report["broker"] = arguments.seed, arguments.broker
    report["seconds"] = round(time.monotonic() - started)
    print(json.dumps(report, indent=2))
    good = kept(report)
    print("the promise was kept" if good else f"BROKEN: see {home}/workers.log")
    return 0 if good else 1


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--invalid", type=float, default=0.05, help="share of invalid requests")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--broker-restarts", type=int, default=0)
    parser.add_argument("--spread", type=float, default=20.0, help="seconds over which to ask")
    parser.add_argument("--pace", type=float, default=1.0, help="stretches the time between faults")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds to wait at the end")
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
