"""An extraction worker that misbehaves on request."""

from __future__ import annotations

import os
import signal
import time

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
