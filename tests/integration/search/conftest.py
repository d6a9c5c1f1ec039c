"""Worker processes that all search tests share."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from citeflow.search.duckduckgo import JOB_TARGET
from citeflow.search.duckduckgo_job import JobRequest
from citeflow.workers import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def engines_pool() -> Iterator[WorkerPool]:
    """Two workers with the search client loaded."""
    pool = WorkerPool(JOB_TARGET, size=2)
    job = JobRequest("warm", 1, "http://127.0.0.1:9/", time.monotonic() + 60)

    async def warm() -> None:
        payload = msgspec.json.encode(job)
        await asyncio.gather(*(pool.run(payload, timeout=60) for _ in range(4)))

    asyncio.run(warm())
    yield pool
    pool.close()
