"""The worker process: `python -m citeflow.workers TARGET PARENT_PID MEMORY_LIMIT`.

Standard input is a socket to the pool. The process ends when that socket does, and on Linux the
kernel ends it together with the thread that started it, so it never outlives its parent.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import resource
import signal
import socket
import sys
from typing import TYPE_CHECKING

from citeflow.workers.frames import FrameError, Tag, receive, send

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def _end_with_parent(parent_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:  # it was gone before the kernel was told
            os._exit(0)


def _take_connection() -> socket.socket:
    """Move the socket off descriptor 0, so that nothing the target does can read from it."""
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return connection


def _load(target: str) -> Callable[[bytes], bytes]:
    module, _, name = target.partition(":")
    function: Callable[[bytes], bytes] = getattr(importlib.import_module(module), name)
    return function


def _describe(exc: BaseException) -> bytes:
    # Lone surrogates in a message must not break the answer that reports it.
    return f"{type(exc).__name__}: {exc}"[:1000].encode("utf-8", "replace")


def main(target: str, parent_pid: int, memory_limit_bytes: int) -> None:
    """Import the target, then answer jobs until the pool goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to handle
    _end_with_parent(parent_pid)
    connection = _take_connection()
    if memory_limit_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))
    try:
        function = _load(target)
    except Exception as exc:  # noqa: BLE001 - whatever the import raises is the pool's to report
        send(connection, Tag.FAILED, _describe(exc))
        return
    # What the imports made stays; the collector need not look at it during the jobs.
    gc.collect()
    gc.freeze()
    send(connection, Tag.READY, b"")
    while True:
        try:
            _, payload = receive(connection)
        except (FrameError, OSError):
            return
        try:
            tag, body = Tag.ANSWER, function(payload)
        except MemoryError:
            # What is left of this process is not to be trusted with the next job.
            os._exit(os.EX_OSERR)
        except Exception as exc:  # noqa: BLE001 - the boundary: the caller gets it as WorkerFailed
            tag, body = Tag.FAILED, _describe(exc)
        try:
            send(connection, tag, body)
        except FrameError as exc:
            send(connection, Tag.FAILED, _describe(exc))
        except OSError:
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
