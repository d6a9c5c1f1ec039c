"""A stand-in for the DuckDuckGo worker that hangs the way native code does when it is told to."""

from __future__ import annotations

import ctypes
import os

from citeflow.search import duckduckgo_job

__all__ = ["hang_crash_or_search"]


def hang_crash_or_search(payload: bytes) -> bytes:
    """Blocks for ten minutes with the interpreter lock held, or dies, if the query says so."""
    if b"please hang" in payload:
        # PyDLL, unlike CDLL, keeps the lock: no Python thread or signal handler runs meanwhile.
        ctypes.PyDLL(None).sleep(600)
    if b"please crash" in payload:
        os.abort()
    return duckduckgo_job.run(payload)
