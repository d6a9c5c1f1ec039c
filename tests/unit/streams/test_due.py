"""What is due is found, once at a time, until it is dealt with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streams.due import DueIndex

T0 = datetime(2026, 1, 1, tzinfo=UTC)
S = timedelta(seconds=1)


def test_pops_what_is_due_in_order() -> None:
    """Only due keys, the earliest first, each with the time it was due."""
    index = DueIndex()
    for key, at in ((b"c", 3), (b"a", 1), (b"b", 2), (b"d", 9)):
        index.set(key, T0 + at * S)
    assert index.pop(T0 + 3 * S) == [(b"a", T0 + S), (b"b", T0 + 2 * S), (b"c", T0 + 3 * S)]


def test_offers_a_key_again_until_it_is_dealt_with() -> None:
    """A tick that got lost is repeated after the retry time, with the same due time."""
    index = DueIndex(retry=10 * S)
    index.set(b"a", T0)
    assert index.pop(T0) == [(b"a", T0)]
    assert index.pop(T0 + 9 * S) == []
    assert index.pop(T0 + 10 * S) == [(b"a", T0)]
    index.discard(b"a")
    assert index.pop(T0 + 60 * S) == []


def test_setting_again_replaces() -> None:
    """The last time set counts; setting the same time again changes nothing."""
    index = DueIndex()
    index.set(b"a", T0)
    index.set(b"a", T0 + 5 * S)
    assert index.pop(T0) == []
    index.set(b"a", T0 + 5 * S)
    assert index.pop(T0 + 5 * S) == [(b"a", T0 + 5 * S)]
    assert len(index) == 1


def test_pops_at_most_the_limit() -> None:
    """A sweep over many due keys is taken in pieces."""
    index = DueIndex()
    for number in range(10):
        index.set(str(number).encode(), T0)
    assert len(index.pop(T0, limit=4)) == 4
    assert len(index.pop(T0, limit=100)) == 6


def test_ticks_that_bring_nothing_come_less_and_less_often() -> None:
    """Twice as long after each, up to the longest; a new time begins anew."""
    index = DueIndex(retry=10 * S, longest=35 * S)
    index.set(b"a", T0)
    offered = [second for second in range(130) if index.pop(T0 + second * S)]
    assert offered == [0, 10, 30, 65, 100]
    index.set(b"a", T0 + 200 * S)
    assert [n for n in range(200, 215) if index.pop(T0 + n * S)] == [200, 210]
