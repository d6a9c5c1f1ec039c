"""How soon does a change of a setting in PostgreSQL count in a running worker?

    python -m benchmarks.settings              # 10 changes; by NOTIFY, and by asking alone

A worker process on the embedded broker is asked for one topic again and again. The time is from the
end of `citeflow settings set` to the moment at which the first request was asked whose corpus shows
the change. The alternative, in the same run: no notification, the worker asks every 5 s.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

import asyncpg

from benchmarks.local_broker import local_broker
from streams.client import Client
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.embedded import embedded_profile
from streams.runner import wait_for_topics
from tests.support.line import web_settings, worker_process
from tests.support.postgres import local_postgres

SQL = (Path(__file__).parents[1] / "ops/sql/app_settings.sql").read_text()
KEY = "research_min_snippet_words"
TOPIC = "FastAPI streaming responses"
POLL_SECONDS = 5


async def change(url: str, *words: str) -> None:
    """`citeflow settings`, as an operator runs it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "citeflow", "settings", *words,
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "CITEFLOW_DATABASE_URL": url},
    )  # fmt: skip
    if await process.wait():
        raise RuntimeError(f"citeflow settings {' '.join(words)} failed")


async def seconds_until(client: Client, *, sources: bool) -> float:
    """From now to the asking of the first request that has sources, or has none."""
    since = time.monotonic()
    while True:
        asked_at = time.monotonic()
        context = await client.ask(TOPIC, timeout=60)
        if bool(context.sources) is sources:
            return asked_at - since


async def measured(config: StreamConfig, url: str, changes: int) -> list[float]:
    """The times of so many changes, half of them there and half of them back."""
    client = Client(config.broker)
    times = []
    async with DemoWeb() as web:
        settings = {**web_settings(web.origin), "settings_poll_seconds": str(POLL_SECONDS)}
        async with worker_process(config, settings):
            await client.ask(TOPIC, timeout=60)
            for number in range(changes):
                there = number % 2 == 0
                await change(url, *(("set", KEY, "50") if there else ("unset", KEY)))
                times.append(await seconds_until(client, sources=not there))
            await change(url, "unset", KEY)
    return times


async def run(changes: int) -> None:
    """Both ways, one after the other."""
    with local_postgres() as server:
        connection = await asyncpg.connect(server.url)
        await connection.execute(SQL)
        report = {}
        for way in ("notified", "asking alone"):
            if way == "asking alone":
                await connection.execute("ALTER TABLE app_settings DISABLE TRIGGER USER")
            async with local_broker("embedded") as broker:
                config = embedded_profile(StreamConfig(partitions=4), broker)
                config = replace(config, database_url=server.url)
                await wait_for_topics(config)
                times = await measured(config, server.url, changes)
            report[way] = {
                "median_s": round(statistics.median(times), 2),
                "longest_s": round(max(times), 2),
            }
        await connection.close()
    print(json.dumps(report, indent=2))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=10)
    asyncio.run(run(parser.parse_args().changes))


if __name__ == "__main__":
    main()
