"""One worker process, seen from its parent."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import sys
import time

from citeflow.workers.errors import WorkerFailed
from citeflow.workers.frames import Tag, receive, send

__all__ = ["Process"]

# Importing the extraction libraries takes about half a second on an idle machine; a hundred times
# that is a machine in distress, and a job that waited so long is better failed than kept.
_START_SECONDS = 60.0


class Process:
    """One worker process and the socket to it. Used by one thread; `kill` by any."""

    def __init__(self, target: str, memory_limit_bytes: int | None) -> None:
        self.jobs_done = 0
        self._socket, theirs = socket.socketpair()
        # The worker finds the modules its parent finds, also from a checkout or an embedded
        # interpreter; -P keeps the working directory off its path unless it is on the parent's.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        command = [sys.executable, "-P", "-m", "citeflow.workers", target]
        command += [str(os.getpid()), str(memory_limit_bytes or 0)]
        with theirs:
            self._popen: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                process_group=0,  # a Ctrl-C at the terminal is the parent's, also during start-up
            )

    def await_ready(self) -> None:
        """Wait until the target is imported; raises as `run` does."""
        tag, body = receive(self._socket, deadline=time.monotonic() + _START_SECONDS)
        if tag is not Tag.READY:
            raise WorkerFailed(body.decode())

    def run(self, payload: bytes, *, deadline: float) -> bytes:
        """The target's answer, by `deadline` (of `time.monotonic`).

        Raises `WorkerFailed`, `TimeoutError`, `FrameError` and `OSError`.
        """
        send(self._socket, Tag.JOB, payload, deadline=deadline)
        tag, body = receive(self._socket, deadline=deadline)
        self.jobs_done += 1
        if tag is Tag.FAILED:
            raise WorkerFailed(body.decode())
        return body

    def alive(self) -> bool:
        """True while it has not ended."""
        return self._popen.poll() is None

    def ending(self) -> str:
        """How it ended, for people; a process that closed its socket is about to."""
        try:
            return f"exit code {self._popen.wait(1.0)}"
        except subprocess.TimeoutExpired:
            return "still running"

    def resident_bytes(self) -> int:
        """The memory it holds now; 0 where the system does not say."""
        try:
            with open(f"/proc/{self._popen.pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * resource.getpagesize()
        except (OSError, IndexError, ValueError):
            return 0

    def kill(self) -> None:
        """End it, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            self._popen.kill()

    def dispose(self) -> int:
        """Kill it if need be, reap it, and return its exit code."""
        self.kill()
        self._socket.close()
        return self._popen.wait()
