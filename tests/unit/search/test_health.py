"""Circuits and rate limits, on a clock of the test's own."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.search import SearchStatus
from citeflow.search.health import EngineLimits, Health, Refusal

LIMITS = EngineLimits(per_minute=0, failures=3, open_seconds=60.0)
REFUSALS = [SearchStatus.CHALLENGED, SearchStatus.RATE_LIMITED, SearchStatus.BLOCKED]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    "status", [*REFUSALS, SearchStatus.TIMEOUT, SearchStatus.UNREACHABLE], ids=str
)
def test_repeated_failures_open_the_circuit_for_a_while(clock: Clock, status: SearchStatus) -> None:
    """After three in a row nobody asks; a minute later one does, and an answer closes it."""
    engine = Health(clock).of("e")
    for _ in range(3):
        assert engine.admit(LIMITS, patience=1.0) == 0.0
        engine.report(status, LIMITS)
    refused = engine.admit(LIMITS, patience=1.0)
    assert isinstance(refused, Refusal)
    assert (refused.status, refused.retry_after, refused.circuit_open) == (status, 60.0, True)
    assert engine.state().circuit_open
    clock.now += 60.0
    assert engine.admit(LIMITS, patience=1.0) == 0.0
    waiting = engine.admit(LIMITS, patience=1.0)
    assert isinstance(waiting, Refusal)
    assert waiting.on_trial
    engine.report(SearchStatus.EMPTY, LIMITS)
    assert engine.admit(LIMITS, patience=1.0) == 0.0
    assert not engine.state().circuit_open


def test_a_failed_trial_opens_it_again(clock: Clock) -> None:
    """One more refusal is enough, and a trial that was abandoned leaves the turn to the next."""
    engine = Health(clock).of("e")
    for _ in range(3):
        engine.report(SearchStatus.BLOCKED, LIMITS)
    clock.now += 60.0
    assert engine.admit(LIMITS, patience=1.0) == 0.0
    engine.abandon()
    assert engine.admit(LIMITS, patience=1.0) == 0.0
    engine.report(SearchStatus.BLOCKED, LIMITS)
    refused = engine.admit(LIMITS, patience=1.0)
    assert isinstance(refused, Refusal)
    assert refused.retry_after == 60.0


def test_an_answer_in_between_keeps_it_closed(clock: Clock) -> None:
    """Only failures in a row count; what is no fault of the engine's does not."""
    engine = Health(clock).of("e")
    for status in (*REFUSALS[:2], SearchStatus.OK, *REFUSALS[:2], SearchStatus.UNAVAILABLE):
        engine.report(status, LIMITS)
    assert engine.admit(LIMITS, patience=1.0) == 0.0


@pytest.mark.parametrize(("asked", "kept"), [(30.0, 30.0), (86_400.0, 3_600.0)])
def test_retry_after_is_honoured_under_a_ceiling(clock: Clock, asked: float, kept: float) -> None:
    """The first refusal that names a time keeps everybody away until then, an hour at most."""
    engine = Health(clock).of("e")
    engine.report(SearchStatus.RATE_LIMITED, LIMITS, retry_after=asked)
    refused = engine.admit(LIMITS, patience=1.0)
    assert isinstance(refused, Refusal)
    assert refused.retry_after == kept
    clock.now += kept
    assert engine.admit(LIMITS, patience=1.0) == 0.0


@given(
    per_minute=st.integers(1, 600),
    pauses=st.lists(st.floats(min_value=0.0, max_value=5.0), min_size=1, max_size=200),
)
def test_no_minute_has_more_requests_than_allowed(per_minute: int, pauses: list[float]) -> None:
    """Whenever searches come, no 60 s see more than the limit and the burst of ten seconds."""
    clock = Clock()
    engine = Health(clock).of("e")
    limits = EngineLimits(per_minute=per_minute)
    sent = []
    for pause in pauses:
        clock.now += pause
        wait = engine.admit(limits, patience=1e9)
        assert isinstance(wait, float)
        sent.append(clock.now + wait)
    allowed = per_minute + max(1.0, per_minute / 6) + 1
    for start in sent:
        assert sum(start <= at < start + 60.0 for at in sent) <= allowed


def test_a_search_without_patience_is_refused_and_costs_nothing(clock: Clock) -> None:
    """It learns when its turn would be, and the turn stays free."""
    engine = Health(clock).of("e")
    limits = EngineLimits(per_minute=6)
    assert engine.admit(limits, patience=0.0) == 0.0
    for _ in range(3):
        refused = engine.admit(limits, patience=5.0)
        assert isinstance(refused, Refusal)
        assert (refused.status, refused.retry_after) == (SearchStatus.RATE_LIMITED, 10.0)
    assert engine.admit(limits, patience=10.0) == 10.0
    assert engine.state().not_asked == 3


def test_engines_are_apart_and_searches_share(clock: Clock) -> None:
    """One state for each endpoint, the same from every thread."""
    health = Health(clock)
    found = []
    threads = [threading.Thread(target=lambda: found.append(health.of("a"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    for _ in range(3):
        health.of("a").report(SearchStatus.BLOCKED, LIMITS)
    assert health.of("b").admit(LIMITS, patience=1.0) == 0.0
    assert {state.endpoint: state.requests for state in health.states()} == {
        "a": {"blocked": 3},
        "b": {},
    }
