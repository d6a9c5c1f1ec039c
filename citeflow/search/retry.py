"""Asking a flaky backend again: exponential back-off with jitter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from citeflow.search.outcome import SearchStatus

if TYPE_CHECKING:
    from citeflow.search.backend import BackendAnswer

__all__ = ["RetryPolicy", "Sleep", "Uniform", "worth_repeating"]

Sleep = Callable[[float], Awaitable[object]]
Uniform = Callable[[float, float], float]

_FINAL = frozenset({SearchStatus.TIMEOUT, SearchStatus.CHALLENGED, SearchStatus.BLOCKED})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` in all (at least one is made), and the back-off's base in seconds."""

    attempts: int
    base_delay: float

    def delay(self, failed: int, uniform: Uniform) -> float:
        """Seconds to wait after the failed attempt number `failed` (from 0).

        `base * 2**failed + U(0, base)`: at the default of 500 ms, 0.5 to 1.0 s and then 1.0 to
        1.5 s.
        """
        return self.base_delay * float(2**failed) + uniform(0.0, self.base_delay)


def worth_repeating(answer: BackendAnswer, *, retry_after_ceiling: float) -> bool:
    """Whether the same backend may have another answer a moment later.

    Hits and an honest nothing end the matter. So does a timeout, because the time for this
    backend is spent; a challenge and a refusal, because asking again at once confirms what the
    engine suspects while another backend may answer; and a `Retry-After` beyond the ceiling, in
    seconds, because asking before that is useless and rude.
    """
    if answer.status.answered or answer.status in _FINAL or not answer.retryable:
        return False
    return answer.retry_after is None or answer.retry_after <= retry_after_ceiling
