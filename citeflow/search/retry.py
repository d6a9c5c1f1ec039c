"""Asking a flaky backend again: exponential back-off with jitter."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from citeflow.search.outcome import SearchStatus

if TYPE_CHECKING:
    from citeflow.search.backend import BackendAnswer

__all__ = ["RetryPolicy", "Sleep", "Uniform", "ask_with_retries"]

Sleep = Callable[[float], Awaitable[object]]
Uniform = Callable[[float, float], float]


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


async def ask_with_retries(
    ask: Callable[[], Awaitable[BackendAnswer]],
    policy: RetryPolicy,
    *,
    sleep: Sleep = asyncio.sleep,
    uniform: Uniform = random.uniform,
) -> BackendAnswer:
    """The first answer that ends the matter, or the last one.

    Hits and an honest nothing end it. So does a timeout, because the time for this backend is
    spent, and an answer with `Retry-After`, because asking again before that is asked for is
    useless and rude.
    """
    attempts = max(1, policy.attempts)
    for attempt in range(attempts):
        answer = await ask()
        if attempt == attempts - 1 or not _worth_repeating(answer):
            break
        await sleep(policy.delay(attempt, uniform))
    return answer


def _worth_repeating(answer: BackendAnswer) -> bool:
    if answer.status.answered or answer.status is SearchStatus.TIMEOUT:
        return False
    return answer.retryable and answer.retry_after is None
