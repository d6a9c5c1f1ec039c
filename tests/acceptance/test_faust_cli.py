"""Faust's own command line runs the line too."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import schemas
from streams.client import Client
from streams.config import StreamConfig
from streams.demo import DemoWeb
from tests.support.line import web_settings, worker_process


async def test_faust_worker_answers_a_request(line_config: StreamConfig) -> None:
    """`faust -A streams.app worker` answers a request and ends on SIGTERM."""
    command = (
        str(Path(sys.executable).with_name("faust")), "-A", "streams.app", "worker", "-l", "info",
    )  # fmt: skip
    async with (
        DemoWeb() as web,
        worker_process(
            line_config, web_settings(web.origin), command=command, ready=b"Worker ready"
        ) as worker,
    ):
        context = await Client(line_config.broker).ask("Redis caching", timeout=60)
        worker.send_signal(signal.SIGTERM)
        await worker.wait()
    assert context.outcome == schemas.ContextOutcome.COMPLETE, context.dropped
