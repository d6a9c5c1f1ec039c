"""An extraction worker that misbehaves on request."""

from __future__ import annotations

import os
import signal
import time

import msgspec
import psutil

from citeflow.fetch.exchange import Extracted
from citeflow.fetch.extract import run


def extract_or_misbehave(payload: bytes) -> bytes:
    """Extraction as it is, except for pages that name a way to fail."""
    if b"please hang" in payload:
        time.sleep(1000)
    if b"please crash" in payload:
        os.kill(os.getpid(), signal.SIGSEGV)
    if b"please raise" in payload:
        raise ValueError("asked to")
    return run(payload)


def extract_measured(payload: bytes) -> bytes:
    """How a page ended, the CPU seconds it took, the worker's id, and its resident bytes after."""
    started = time.process_time()
    found = msgspec.msgpack.decode(run(payload), type=Extracted)
    seconds = time.process_time() - started
    resident = psutil.Process().memory_info().rss
    return msgspec.msgpack.encode((found.readability.value, seconds, os.getpid(), resident))
