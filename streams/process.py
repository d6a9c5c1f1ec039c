"""A command's life as a process: run it, end it on a signal, and end it for good in time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from typing import Any

__all__ = ["INTERRUPTED", "end_in", "run_until_signal"]

FAILED, INTERRUPTED = 1, 130


def run_until_signal(main: Coroutine[Any, Any, int], *, grace: float) -> int:
    """Run `main` to its exit code; SIGINT or SIGTERM cancels it.

    Returns 130 when it was cancelled and did not answer with a code of its own. A process that
    has not ended `grace` seconds after the signal, or gets a second one, ends on the spot: what
    it had not acknowledged is handled again by the next worker.
    """
    # What the imports made stays. Looking through it at every full collection would hold the event
    # loop for tens of milliseconds, with a thousand pages under way just when it matters.
    gc.collect()
    gc.freeze()
    return asyncio.run(_supervise(main, grace))


async def _supervise(main: Coroutine[Any, Any, int], grace: float) -> int:
    task = asyncio.ensure_future(main)
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if task.cancelling():
            _end_now(INTERRUPTED)
        task.cancel()
        end_in(grace, INTERRUPTED)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    code = FAILED
    try:
        code = await task
    except asyncio.CancelledError:
        code = INTERRUPTED
    finally:
        # Whatever main ended with: tasks and threads left behind must not keep the process. The
        # signal handlers stay, so that a second signal still ends it at once.
        end_in(grace, code)
    return code


def end_in(seconds: float, code: int) -> None:
    """End the process with `code` if it has not ended by itself by then."""
    # A thread, not a loop timer: what holds the loop must not hold the end as well.
    timer = threading.Timer(seconds, _end_now, (code,))
    timer.daemon = True
    timer.start()


def _end_now(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
