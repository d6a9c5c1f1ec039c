"""Back-off: how often, how long, and when not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.search import SearchHit, SearchStatus
from citeflow.search.backend import BackendAnswer
from citeflow.search.retry import RetryPolicy, ask_with_retries

OK = BackendAnswer(SearchStatus.OK, (SearchHit("t", "https://a.example/", "s"),))
FAILED = BackendAnswer(SearchStatus.UNREACHABLE)


class Asked:
    def __init__(self, *answers: BackendAnswer) -> None:
        self.answers = list(answers)
        self.calls = 0
        self.slept: list[float] = []

    async def ask(self) -> BackendAnswer:
        self.calls += 1
        return self.answers[min(self.calls, len(self.answers)) - 1]

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def run(self, attempts: int, chance: float = 0.5) -> BackendAnswer:
        return await ask_with_retries(
            self.ask,
            RetryPolicy(attempts, 0.5),
            sleep=self.sleep,
            uniform=lambda low, high: low + chance * (high - low),
        )


@given(st.floats(min_value=0.0, max_value=1.0))
async def test_three_failures_wait_twice(chance: float) -> None:
    """Three attempts, sleeps in [0.5, 1.0] and [1.0, 1.5], none after the last."""
    asked = Asked(FAILED)
    assert await asked.run(3, chance) is FAILED
    assert asked.calls == 3
    first, second = asked.slept
    assert 0.5 <= first <= 1.0 <= second <= 1.5


async def test_one_failure_then_hits() -> None:
    """The first hits end it."""
    asked = Asked(FAILED, OK)
    assert await asked.run(3) is OK
    assert asked.calls == 2


@pytest.mark.parametrize(
    "answer",
    [
        BackendAnswer(SearchStatus.TIMEOUT),
        BackendAnswer(SearchStatus.EMPTY),
        BackendAnswer(SearchStatus.RATE_LIMITED, retry_after=30.0),
        BackendAnswer(SearchStatus.UNAVAILABLE, retryable=False),
    ],
)
async def test_no_retry_where_it_is_useless(answer: BackendAnswer) -> None:
    """A timeout, an honest zero, a named wait and a missing package are not asked again."""
    asked = Asked(answer)
    assert await asked.run(3) is answer
    assert (asked.calls, asked.slept) == (1, [])


@pytest.mark.parametrize("attempts", [0, -3, 1])
async def test_at_least_one_attempt(attempts: int) -> None:
    """No configuration asks less than once."""
    asked = Asked(FAILED)
    await asked.run(attempts)
    assert (asked.calls, asked.slept) == (1, [])
