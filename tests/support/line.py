"""Driving the line from a test: put bytes on topics, gather what comes out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar

import schemas
from citeflow.settings import SiteConfig, env_name
from streams.config import StreamConfig
from streams.log_reader import read_log
from streams.runner import WorkerRunner
from streams.topics import TOPICS
from tests.support.broker import BACKEND, SESSION_TIMEOUT

__all__ = [
    "gather",
    "gather_until",
    "running_line",
    "web_settings",
    "worker_environment",
    "worker_process",
]

R = TypeVar("R", bound=schemas.Record)

# Long enough for a slow machine; a test that waits this long has failed.
PATIENCE = 60.0


def web_settings(origin: str) -> dict[str, str]:
    """Settings that make a loopback server the whole web: its search and its pages."""
    return {
        "web_research_backends": "searxng",
        "web_research_searxng_url": origin,
        "fetch_allowed_internal_origins": origin,
    }


@contextlib.asynccontextmanager
async def running_line(
    config: StreamConfig, settings: Mapping[str, object]
) -> AsyncIterator[WorkerRunner]:
    """All three applications in this process."""
    async with WorkerRunner(config, SiteConfig(settings, environ={})) as runner:
        yield runner


def worker_environment(config: StreamConfig, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker process: where Kafka is, and settings by key."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("CITEFLOW_")}
    env["CITEFLOW_RESEARCH_NO_CACHE"] = "1"
    env |= {env_name(key): value for key, value in settings.items()}
    env |= {
        "CITEFLOW_BROKER": config.broker,
        "CITEFLOW_PARTITIONS": str(config.partitions),
        "CITEFLOW_APP_PREFIX": config.app_prefix,
        "CITEFLOW_DATABASE_URL": config.database_url,
        "CITEFLOW_BROKER_PROFILE": "embedded" if BACKEND == "embedded" else "kafka",
        "CITEFLOW_SESSION_TIMEOUT": str(SESSION_TIMEOUT.get(BACKEND, 30)),
    }
    return env


@contextlib.asynccontextmanager
async def worker_process(
    config: StreamConfig,
    settings: Mapping[str, str],
    *,
    command: Sequence[str] = (sys.executable, "-m", "streams", "worker"),
    ready: bytes = b"worker ready",
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker as a process of its own, ready to work. Killed at the end if it still runs."""
    env = worker_environment(config, settings)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=env,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while line := await process.stderr.readline():
                if ready in line:
                    break
            else:
                raise RuntimeError(f"the worker ended with {await process.wait()}")
        drain = asyncio.ensure_future(process.stderr.read())
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()
    with contextlib.suppress(asyncio.CancelledError):
        await drain


async def gather(broker: str, record_type: type[R]) -> list[R]:
    """All records of this type that are on their topic now."""
    topic = next(spec.name for spec in TOPICS.values() if spec.record is record_type)
    return [
        schemas.decode(record.value, record_type)
        async for record in read_log(broker, topic)
        if record.value
    ]


async def gather_until(
    broker: str,
    record_type: type[R],
    enough: Callable[[list[R]], bool],
    *,
    patience: float = PATIENCE,
) -> list[R]:
    """Records of this type, read as they come until there are `enough`. Raises `TimeoutError`."""
    topic = next(spec.name for spec in TOPICS.values() if spec.record is record_type)
    found: list[R] = []
    if enough(found):
        return found
    async with asyncio.timeout(patience):
        async with contextlib.aclosing(read_log(broker, topic, follow=True)) as log:
            async for record in log:
                if record.value:
                    found.append(schemas.decode(record.value, record_type))
                if enough(found):
                    break
    return found
