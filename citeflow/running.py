"""Coroutines run to their end from code that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run_to_end"]

T = TypeVar("T")


def run_to_end(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end here, or in a thread of its own where a loop already runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    results: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()  # findings still reach the caller's collector

    def work() -> None:
        try:
            results.append(context.run(asyncio.run, make()))
        except BaseException as exc:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(exc)

    thread = threading.Thread(target=work, name="citeflow-sync", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
