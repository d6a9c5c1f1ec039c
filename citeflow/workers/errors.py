"""Why a job has no answer."""

from __future__ import annotations

__all__ = ["WorkerCrashed", "WorkerError", "WorkerFailed", "WorkerTimeout"]


class WorkerError(Exception):
    """A job could not be answered; see the subclasses for why."""


class WorkerTimeout(WorkerError):
    """The job ran longer than its timeout; its worker was killed, the next job gets a new one."""


class WorkerCrashed(WorkerError):
    """The worker died during the job or could not be started, or the pool is closed."""


class WorkerFailed(WorkerError):
    """The target function raised; the message holds the exception's type and text."""
