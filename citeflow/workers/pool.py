"""The pool: one thread per worker process, one job in flight per worker, a common FIFO queue."""

from __future__ import annotations

import asyncio
import atexit
import collections
import concurrent.futures
import math
import threading
import time
import weakref
from dataclasses import dataclass

from citeflow.workers.errors import WorkerCrashed, WorkerError, WorkerFailed, WorkerTimeout
from citeflow.workers.frames import FrameError
from citeflow.workers.process import Process

__all__ = ["WorkerCrashed", "WorkerError", "WorkerFailed", "WorkerPool", "WorkerTimeout"]

# The workers are killed before the threads are joined, so this bounds only a kernel in trouble.
_JOIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Job:
    payload: bytes
    timeout: float
    expires: float
    future: concurrent.futures.Future[bytes]


class WorkerPool:
    """Up to `size` worker processes running `target` (`"package.module:function"`).

    Processes start when jobs ask for them (`warm` starts all). They are replaced after
    `max_jobs_per_worker` jobs, and after a job that leaves one with more than `max_worker_bytes` of
    memory (None: no matter), which bounds what a leaking native library can hold.
    `memory_limit_bytes` caps a worker's address space, also during a job; None: no cap. A pool may
    be used from any thread and any event loop, and from one loop after another.
    """

    def __init__(
        self,
        target: str,
        *,
        size: int,
        max_jobs_per_worker: int = 500,
        max_worker_bytes: int | None = None,
        memory_limit_bytes: int | None = None,
    ) -> None:
        if size < 1 or max_jobs_per_worker < 1:
            raise ValueError("size and max_jobs_per_worker must be at least 1")
        self._target = target
        self._size = size
        self._max_jobs = max_jobs_per_worker
        self._max_worker_bytes = max_worker_bytes
        self._memory_limit_bytes = memory_limit_bytes
        self._changed = threading.Condition()
        # Guarded by _changed:
        self._jobs: collections.deque[_Job] = collections.deque()
        self._threads: list[threading.Thread] = []
        self._processes: set[Process] = set()
        self._busy = 0
        self._closed = False
        _open_pools.add(self)

    async def run(self, payload: bytes, *, timeout: float, wait_included: bool = False) -> bytes:
        """The target's answer to `payload`.

        `timeout` in seconds counts from when a worker takes the job, or with `wait_included` from
        this call: then a job that found no worker by its end is not begun. Raises
        `WorkerTimeout`, `WorkerCrashed`, `WorkerFailed`. Cancelling a job that waits removes it;
        one that runs ends by itself, and its answer is dropped.
        """
        expires = time.monotonic() + timeout if wait_included else math.inf
        job = _Job(payload, timeout, expires, concurrent.futures.Future())
        with self._changed:
            if self._closed:
                raise WorkerCrashed("the worker pool is closed")
            self._jobs.append(job)
            if len(self._jobs) > len(self._threads) - self._busy:
                self._add_thread()
            self._changed.notify()
        return await asyncio.wrap_future(job.future)

    def warm(self, count: int | None = None) -> None:
        """Have at least `count` workers (default: all) started now; returns at once."""
        wanted = self._size if count is None else min(count, self._size)
        with self._changed:
            while not self._closed and len(self._threads) < wanted:
                self._add_thread()

    def close(self) -> None:
        """Kill the workers. Jobs that run or wait raise `WorkerCrashed`. May be called again."""
        with self._changed:
            self._closed = True
            waiting = list(self._jobs)
            self._jobs.clear()
            for process in self._processes:
                process.kill()
            threads = list(self._threads)
            self._changed.notify_all()
        for job in waiting:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(WorkerCrashed("the worker pool was closed"))
        for thread in threads:
            thread.join(_JOIN_SECONDS)
        _open_pools.discard(self)

    def _add_thread(self) -> None:
        if len(self._threads) < self._size:
            thread = threading.Thread(target=self._serve, name="citeflow-worker", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self) -> None:
        """Keep one worker process: start it, hand it one job at a time, replace it."""
        process: Process | None = None
        problem: WorkerError | None = None
        while True:
            if process is None:
                # Before a job is taken, so that no job waits here while another worker is free.
                process, problem = self._start()
            job = self._next_job()
            if job is None:
                break
            if process is not None and not process.alive():
                # It died while idle (the kernel's memory killer, say): not this job's fault.
                self._dispose(process)
                process, problem = self._start()
            answer = problem if process is None else self._answer(process, job)
            broken = isinstance(answer, WorkerTimeout | WorkerCrashed)
            if process is not None and (broken or self._has_served(process)):
                self._dispose(process)
                process = None
            with self._changed:
                self._busy -= 1
            if isinstance(answer, bytes):
                job.future.set_result(answer)
            else:
                job.future.set_exception(answer)
        if process is not None:
            self._dispose(process)

    def _has_served(self, process: Process) -> bool:
        if process.jobs_done >= self._max_jobs:
            return True
        most = self._max_worker_bytes
        return most is not None and process.resident_bytes() > most

    def _next_job(self) -> _Job | None:
        """Wait for a job nobody cancelled; None once the pool is closed."""
        with self._changed:
            while True:
                while not self._jobs and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return None
                job = self._jobs.popleft()
                if not job.future.set_running_or_notify_cancel():
                    continue
                if time.monotonic() >= job.expires:
                    job.future.set_exception(
                        WorkerTimeout(f"no worker was free within {job.timeout:g} s")
                    )
                else:
                    self._busy += 1
                    return job

    def _start(self) -> tuple[Process | None, WorkerError | None]:
        if self._closed:  # no new process while the program is on its way out
            return None, WorkerCrashed("the worker pool is closed")
        try:
            process = Process(self._target, self._memory_limit_bytes)
        except OSError as exc:
            return None, WorkerCrashed(f"the worker process could not be started: {exc}")
        with self._changed:
            self._processes.add(process)
            if self._closed:
                process.kill()
        try:
            process.await_ready()
        except WorkerFailed as exc:
            self._dispose(process)
            return None, exc
        except (FrameError, OSError) as exc:  # TimeoutError is an OSError
            code = self._dispose(process)
            return None, WorkerCrashed(f"the worker did not start ({exc}; exit code {code})")
        return process, None

    def _answer(self, process: Process, job: _Job) -> bytes | WorkerError:
        try:
            deadline = min(time.monotonic() + job.timeout, job.expires)
            return process.run(job.payload, deadline=deadline)
        except WorkerFailed as exc:
            return exc
        except TimeoutError:
            return WorkerTimeout(f"the job took longer than {job.timeout:g} s; its worker is ended")
        except (FrameError, OSError) as exc:
            return WorkerCrashed(f"the worker died during the job ({exc}; {process.ending()})")

    def _dispose(self, process: Process) -> int:
        with self._changed:
            self._processes.discard(process)
        return process.dispose()


_open_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in list(_open_pools):
        pool.close()
