"""Back-off: how long, and when not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.search import SearchStatus
from citeflow.search.backend import BackendAnswer
from citeflow.search.retry import RetryPolicy, worth_repeating


@given(st.floats(min_value=0.0, max_value=1.0))
def test_the_waits_double_with_jitter(chance: float) -> None:
    """At the default of 500 ms: [0.5, 1.0] after the first failure, [1.0, 1.5] after the second."""
    policy = RetryPolicy(3, 0.5)
    first, second = (
        policy.delay(failed, lambda low, high: low + chance * (high - low)) for failed in (0, 1)
    )
    assert 0.5 <= first <= 1.0 <= second <= 1.5


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (BackendAnswer(SearchStatus.OK), False),
        (BackendAnswer(SearchStatus.EMPTY), False),
        (BackendAnswer(SearchStatus.TIMEOUT), False),
        (BackendAnswer(SearchStatus.CHALLENGED), False),
        (BackendAnswer(SearchStatus.BLOCKED), False),
        (BackendAnswer(SearchStatus.UNAVAILABLE, retryable=False), False),
        (BackendAnswer(SearchStatus.RATE_LIMITED, retry_after=30.0), False),
        (BackendAnswer(SearchStatus.RATE_LIMITED, retry_after=2.0), True),
        (BackendAnswer(SearchStatus.RATE_LIMITED), True),
        (BackendAnswer(SearchStatus.UNREACHABLE), True),
        (BackendAnswer(SearchStatus.UNAVAILABLE), True),
    ],
)
def test_only_what_may_pass_is_asked_again(answer: BackendAnswer, expected: bool) -> None:
    """Answers, refusals, spent time and long waits end the matter for this backend."""
    assert worth_repeating(answer, retry_after_ceiling=2.0) is expected
