"""Blocking calls beside the event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_thread"]

_T = TypeVar("_T")


async def in_thread(work: Callable[[], _T], *, name: str) -> _T:
    """What `work` returns or raises, called in a daemon thread of its own.

    One that hangs delays neither other blocking work, as it would in a pool of threads, nor the
    end of the program.
    """
    future: concurrent.futures.Future[_T] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(exc)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)
