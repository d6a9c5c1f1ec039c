"""What HTTP statuses and `Retry-After` mean for a search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.search import SearchStatus
from citeflow.search.backend import parse_retry_after, status_for_http


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (202, SearchStatus.CHALLENGED),
        (429, SearchStatus.RATE_LIMITED),
        (418, SearchStatus.RATE_LIMITED),
        (400, SearchStatus.BLOCKED),
        (401, SearchStatus.BLOCKED),
        (403, SearchStatus.BLOCKED),
        (404, SearchStatus.BLOCKED),
        (500, SearchStatus.UNREACHABLE),
        (503, SearchStatus.UNREACHABLE),
        (204, SearchStatus.UNAVAILABLE),
        (302, SearchStatus.UNAVAILABLE),
    ],
)
def test_status_of_an_http_code(code: int, status: SearchStatus) -> None:
    """Each kind of refusal has a status of its own."""
    assert status_for_http(code) is status


@given(st.integers(min_value=100, max_value=999).filter(lambda code: code != 200))
def test_no_http_code_is_an_honest_zero(code: int) -> None:
    """Whatever is not 200 is a failure."""
    assert not status_for_http(code).answered


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Wed, 21 Oct 2015 07:28:10 GMT", 10.0),
        ("Wed, 21 Oct 2015 07:00:00 GMT", 0.0),
        ("999999999999", 86_400.0),
        ("9" * 400, None),
        ("-5", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    """Both forms of RFC 9110 are read, nonsense is None, and a day is the most."""
    assert parse_retry_after(value, now=1445412480.0) == seconds


@given(st.text())
def test_no_retry_after_raises(value: str) -> None:
    """The header is the engine's to write, and must not be able to break a search."""
    seconds = parse_retry_after(value)
    assert seconds is None or 0.0 <= seconds <= 86_400.0
