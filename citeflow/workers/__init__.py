"""Worker processes that can be killed: for page extraction and for native search clients.

    pool = WorkerPool("package.module:function", size=2)
    answer = await pool.run(payload, timeout=5.0)

The target is a synchronous function `bytes -> bytes`. It runs in a fresh interpreter
(`python -m citeflow.workers`), not in a fork and not under `multiprocessing`, whose start methods
import the embedding program's `__main__` a second time. A job that hangs, even in native code
that never gives the interpreter lock back, is ended with SIGKILL and costs one worker.

    WorkerError
    ├── WorkerTimeout   the job ran out of time; its worker was killed and is replaced
    ├── WorkerCrashed   the worker died, could not be started, or the pool was closed
    └── WorkerFailed    the target function raised; the message names the exception
"""

from __future__ import annotations

from citeflow.workers.errors import WorkerCrashed, WorkerError, WorkerFailed, WorkerTimeout
from citeflow.workers.pool import WorkerPool

__all__ = ["WorkerCrashed", "WorkerError", "WorkerFailed", "WorkerPool", "WorkerTimeout"]
