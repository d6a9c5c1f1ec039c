"""The join as a pure function, and as a process that crashes at any point."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from streams.join import (
    MAX_EARLY_PAGES,
    CloseReason,
    EmitContext,
    Emitted,
    JoinState,
    Phase,
    decode_state,
    encode_state,
    step,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)
DEADLINE = T0 + timedelta(seconds=120)
REMEMBER = timedelta(hours=1)

Event = schemas.SearchHits | schemas.PageFetched | schemas.JoinDue


def hits_of(count: int, *, variant: str = "a", pages_wanted: bool = True) -> schemas.SearchHits:
    return schemas.SearchHits(
        event_id="h", request_id="r", topic="t", category="c", max_results=20,
        requested_at=T0, searched_at=T0, deadline_at=DEADLINE, status="ok",
        pages_wanted=pages_wanted,
        hits=tuple(
            schemas.Hit(rank=n, title="t", url=f"https://{variant}.example/{n}", snippet="s")
            for n in range(count)
        ),
    )  # fmt: skip


def page_of(rank: int, *, variant: str = "a", text: str = "x") -> schemas.PageFetched:
    return schemas.PageFetched(
        event_id=f"p{rank}{text}", request_id="r", rank=rank, status="ok", fetched_at=T0,
        url=f"https://{variant}.example/{rank}", text=text,
    )  # fmt: skip


def run(
    events: list[Event | Emitted], state: JoinState | None = None
) -> tuple[JoinState | None, int]:
    """The last state, and how often the join asked for the context."""
    emits = 0
    for event in events:
        state, effect = step(state, event, arrived_at=T0, remember=REMEMBER)
        if effect is not None:
            emits += 1
            state, _ = step(state, Emitted(T0), arrived_at=T0, remember=REMEMBER)
    return state, emits


def test_closes_when_the_last_page_arrives() -> None:
    """A context is asked for at the last page and not before."""
    state, emits = run([hits_of(2), page_of(0)])
    assert emits == 0
    assert state is not None
    assert state.phase is Phase.COLLECTING

    state, effect = step(state, page_of(1), arrived_at=T0, remember=REMEMBER)
    assert isinstance(effect, EmitContext)
    assert state is not None
    assert state.close_reason is CloseReason.COMPLETE
    assert sorted(state.pages_by_rank) == [0, 1]


@pytest.mark.parametrize("hits", [hits_of(0), hits_of(3, pages_wanted=False)])
def test_hits_without_pages_to_wait_for_close_at_once(hits: schemas.SearchHits) -> None:
    """No hits, or no pages wanted: there is nothing to wait for."""
    assert run([hits])[1] == 1


def test_pages_may_arrive_before_their_hits() -> None:
    """All pages first, hits last: complete."""
    state, effect = None, None
    for event in (page_of(1), page_of(0), hits_of(2)):
        state, effect = step(state, event, arrived_at=T0, remember=REMEMBER)
    assert effect is not None
    assert state is not None
    assert sorted(state.pages_by_rank) == [0, 1]


def test_deadline_closes_with_what_there_is() -> None:
    """The due tick emits the pages that arrived, marked as closed by the deadline."""
    state, _ = run([hits_of(2), page_of(1)])
    state, effect = step(
        state, schemas.JoinDue(request_id="r", due_at=DEADLINE), arrived_at=T0, remember=REMEMBER
    )
    assert effect is not None
    assert state is not None
    assert state.close_reason is CloseReason.DEADLINE
    assert sorted(state.pages_by_rank) == [1]


@pytest.mark.parametrize("seconds", [-1, 1])
def test_a_tick_for_another_time_changes_nothing(seconds: int) -> None:
    """Only the tick that was sent for the current due time counts."""
    state, _ = run([hits_of(2)])
    tick = schemas.JoinDue(request_id="r", due_at=DEADLINE + timedelta(seconds=seconds))
    assert step(state, tick, arrived_at=T0, remember=REMEMBER) == (state, None)


def test_what_arrives_after_closing_does_not_change_the_frozen_pages() -> None:
    """A late page leaves the closing state as it was and asks for the same context again."""
    state, _ = run([hits_of(2), page_of(1)])
    due = schemas.JoinDue(request_id="r", due_at=DEADLINE)
    closing, _ = step(state, due, arrived_at=T0, remember=REMEMBER)
    again, effect = step(closing, page_of(0), arrived_at=T0, remember=REMEMBER)
    assert again == closing
    assert effect is not None


def test_pages_of_another_search_of_the_same_request_are_not_taken() -> None:
    """The first hits win; a page at the same rank with another address is not theirs."""
    state, emits = run([page_of(0, variant="b"), hits_of(1), hits_of(1, variant="b")])
    assert emits == 0
    state, emits = run([page_of(0, variant="b"), page_of(0)], state)
    assert emits == 1


def test_the_first_copy_of_a_page_wins() -> None:
    """A page read twice with different text counts as first seen."""
    state, _ = run([hits_of(2), page_of(0, text="first"), page_of(0, text="second")])
    assert state is not None
    assert state.pages_by_rank[0].text == "first"


def test_done_requests_are_forgotten_in_time() -> None:
    """A finished request is remembered until its expiry tick, and no longer."""
    state, _ = run([hits_of(0)])
    assert state is not None
    assert state.due_at == T0 + REMEMBER
    early = schemas.JoinDue(request_id="r", due_at=DEADLINE)
    assert run([early, hits_of(0), page_of(0)], state) == (state, 0)
    late = schemas.JoinDue(request_id="r", due_at=T0 + REMEMBER)
    assert run([late], state) == (None, 0)


def test_pages_without_hits_are_bounded_and_expire() -> None:
    """Pages of a request nobody searched cannot pile up, nor stay."""
    pages = [page_of(n % 20, variant=f"v{n}") for n in range(MAX_EARLY_PAGES + 10)]
    state, _ = run(list(pages))
    assert state is not None
    assert len(state.pages) == MAX_EARLY_PAGES
    assert run([schemas.JoinDue(request_id="r", due_at=state.due_at)], state) == (None, 0)


def test_state_survives_storage() -> None:
    """What is read from the table equals what was written."""
    state, _ = run([hits_of(2), page_of(1)])
    assert state is not None
    assert decode_state(encode_state(state)) == state


class Crashed(Exception):
    """The worker was killed."""


class Worker:
    """The scoring stage's order of steps over a durable table, killed at chosen steps.

    Step kinds are the durable actions: storing a state, sending the context. A crash happens
    before or after one. What is durable survives; the event being handled comes back.
    """

    def __init__(self, crash_at: set[int]) -> None:
        self.table: JoinState | None = None
        self.sent: list[tuple[CloseReason | None, tuple[tuple[int, str], ...]]] = []
        self._actions = 0
        self._crash_at = crash_at

    def _point(self) -> None:
        self._actions += 1
        if self._actions in self._crash_at:
            raise Crashed

    def _store(self, state: JoinState | None) -> None:
        self._point()
        self.table = decode_state(encode_state(state)) if state is not None else None
        self._point()

    def tick(self) -> schemas.JoinDue:
        """What the timer sends for the state as it is."""
        assert self.table is not None
        return schemas.JoinDue(request_id="r", due_at=self.table.due_at)

    def handle(self, event: Event) -> None:
        before = self.table
        state, effect = step(before, event, arrived_at=T0, remember=REMEMBER)
        if state is not before:
            self._store(state)
        if effect is None:
            return
        assert state is not None
        self._point()
        pages = tuple((rank, page.text) for rank, page in sorted(state.pages_by_rank.items()))
        self.sent.append((state.close_reason, pages))
        self._point()
        done, _ = step(state, Emitted(T0), arrived_at=T0, remember=REMEMBER)
        self._store(done)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Event], set[int]]:
    """Events of one request in any order, with duplicates, losses and ticks; and crash points."""
    count = draw(st.integers(0, 4))
    lost = draw(st.sets(st.integers(0, 3)))
    events: list[Event] = [hits_of(count)]
    repeats = draw(st.lists(st.sampled_from("ab"), max_size=2))
    events += [hits_of(count, variant=variant) for variant in repeats]
    for rank in range(count):
        if rank not in lost:
            copies = draw(st.integers(1, 3))
            events += [page_of(rank, text=f"copy {n}") for n in range(copies)]
    events += [schemas.JoinDue(request_id="r", due_at=DEADLINE)] * draw(st.integers(0, 2))
    shuffled = draw(st.permutations(events))
    return list(shuffled), draw(st.sets(st.integers(1, 30), max_size=8))


@given(histories(), st.randoms(use_true_random=False))
@settings(max_examples=5_000, deadline=None)
def test_exactly_one_context_value_whatever_happens(
    history: tuple[list[Event], set[int]], rng: random.Random
) -> None:
    """Any order, duplicates, losses and crashes at any step: one value, never two."""
    events, crash_at = history
    worker = Worker(crash_at)
    handled: list[Event] = []
    pending = list(events)

    def restart() -> None:
        # Nothing after the last commit is known to be done: some of what was handled comes back,
        # and the three topics may interleave in another way than before.
        redelivered = handled[rng.randint(0, len(handled)) :]
        del handled[len(handled) - len(redelivered) :]
        pending[:0] = redelivered
        if rng.random() < 0.5:
            rng.shuffle(pending)

    while pending or worker.table is None or worker.table.phase is not Phase.DONE:
        # Ticks come again for as long as a request is due.
        event = pending[0] if pending else worker.tick()
        try:
            worker.handle(event)
        except Crashed:
            restart()
            continue
        handled.append(event)
        del pending[:1]

    assert len(worker.sent) >= 1
    assert len(set(worker.sent)) == 1
