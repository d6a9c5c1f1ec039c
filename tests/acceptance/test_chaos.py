"""The chaos harness at a size for every day: kills, pauses, workers that come and go."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.support.broker import BACKEND

# The embedded broker keeps everything in memory: only workers are hurt there.
RESTARTS = 1 if BACKEND == "kafka" else 0


@pytest.mark.broker
@pytest.mark.timeout(400)
@pytest.mark.skipif(BACKEND == "containers", reason="starts and stops a broker of its own")
async def test_a_small_chaos_keeps_the_promise() -> None:
    """100 requests, 5 % of them invalid, 5 kills: each answered once by value, or rejected once."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.chaos", "--broker", BACKEND,
        "--requests", "100", "--kills", "5", "--spread", "8", "--seed", "5",
        "--broker-restarts", str(RESTARTS),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    report, _ = await process.communicate()
    assert process.returncode == 0, report.decode()
