"""Several workers that all take a partition for theirs: the log decides, for everyone the same."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from streams.changelog import Changelog
from streams.join import (
    CloseReason,
    Emitted,
    JoinState,
    Phase,
    encode_state,
    merge,
    resume,
    step,
)
from streams.join_codec import JoinCodec
from tests.unit.streams.test_join import DEADLINE, REMEMBER, T0, hits_of, page_of, run

Event = schemas.SearchHits | schemas.PageFetched | schemas.JoinDue
KEY = b"r"
CODEC = JoinCodec()

Sent = tuple[CloseReason | None, tuple[tuple[int, str], ...], str]


class Broker:
    """The changelog of one partition, and the contexts that were sent."""

    def __init__(self) -> None:
        self.log: list[bytes | None] = []
        self.sent: list[Sent] = []


class Worker:
    """The scoring stage over a changelog. Each `next` of a handler goes to its next outside step.

    It has recovered what the log held when it started, and knows nothing of what others append
    later, until it appends itself.
    """

    def __init__(self, broker: Broker, events: list[Event]) -> None:
        self.broker = broker
        self.events = events
        self.changelog = Changelog({}, CODEC.merge)
        for offset, value in enumerate(broker.log):
            self.changelog.apply(0, offset, KEY, value)
        self.handling: Generator[None, None, None] | None = None

    @property
    def state(self) -> JoinState | None:
        data = self.changelog.data.get(KEY)
        return CODEC.decode(KEY, data) if data is not None else None

    def advance(self) -> bool:
        """One step. False when there is nothing left to do."""
        if self.handling is None:
            if not self.events:
                return False
            self.handling = self.handle(self.events.pop(0))
        if next(self.handling, "over") == "over":
            self.handling = None
        return True

    def put(self, state: JoinState | None) -> Generator[None, None, JoinState | None]:
        yield
        value = encode_state(state) if state is not None else None
        offset = len(self.broker.log)
        self.broker.log.append(value)
        yield
        if self.changelog.is_next(0, offset):
            self.changelog.append(0, offset, KEY, value)
            return state
        start = self.changelog.unread_before(0, offset)
        for foreign in range(start if start is not None else offset, offset):
            self.changelog.apply(0, foreign, KEY, self.broker.log[foreign])
        self.changelog.apply(0, offset, KEY, value)
        return self.state

    def handle(self, event: Event) -> Generator[None, None, None]:
        before = self.state
        state, effect = step(before, event, arrived_at=T0, remember=REMEMBER)
        while state is not before:
            before = yield from self.put(state)
            if before is not state:
                state, effect = resume(before)
        if effect is None:
            return
        assert state is not None
        assert state.hits is not None
        yield
        pages = tuple((rank, page.text) for rank, page in sorted(state.pages_by_rank.items()))
        self.broker.sent.append((state.close_reason, pages, state.hits.event_id))
        done, _ = step(state, Emitted(T0), arrived_at=T0, remember=REMEMBER)
        yield from self.put(done)


@st.composite
def events_of_a_request(draw: st.DrawFn) -> list[Event]:
    """Its events, some of them twice with another text, in any order; some are missing."""
    count = draw(st.integers(0, 3))
    events: list[Event] = [hits_of(count, variant=draw(st.sampled_from("aab")))]
    for rank in range(count):
        copies = draw(st.integers(0, 2))
        events += [page_of(rank, text=f"copy {draw(st.integers(0, 9))}") for _ in range(copies)]
    events += [schemas.JoinDue(request_id="r", due_at=DEADLINE)] * draw(st.integers(0, 1))
    return list(draw(st.permutations(events)))


@given(
    st.lists(events_of_a_request(), min_size=2, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6)), max_size=60),
)
@settings(max_examples=5_000, deadline=None)
def test_workers_that_share_a_partition_never_contradict_each_other(
    histories: list[list[Event]], schedule: list[tuple[int, int]]
) -> None:
    """Each starts at some moment and goes on, stands still, or never goes on: one value."""
    broker = Broker()
    workers: dict[int, Worker] = {}
    for who, steps in schedule:
        name = who % len(histories)
        if name not in workers:
            workers[name] = Worker(broker, list(histories[name]))
        for _ in range(steps):
            workers[name].advance()

    # In the end somebody works alone. What came first on the topics is delivered at least once.
    last = Worker(broker, [hits_of(0), *histories[0]])
    while last.advance() or last.state is None or last.state.phase is not Phase.DONE:
        if not last.events and last.handling is None:
            state = last.state
            assert state is not None
            if state.phase is not Phase.DONE:
                last.events.append(schemas.JoinDue(request_id="r", due_at=state.due_at))
    for worker in workers.values():
        while worker.advance():
            pass
    assert len(set(broker.sent)) == 1


def test_a_late_writer_takes_nothing_back() -> None:
    """A closing state stands against one that collects, closes otherwise, or knows no hits."""
    closing, _ = step(
        run([hits_of(2), page_of(0)])[0],
        schemas.JoinDue(request_id="r", due_at=DEADLINE),
        arrived_at=T0,
        remember=REMEMBER,
    )
    assert closing is not None
    assert closing.phase is Phase.CLOSING
    other, _ = step(
        run([hits_of(1)])[0], page_of(0, text="other"), arrived_at=T0, remember=REMEMBER
    )
    assert other is not None
    for late in (other, run([page_of(1)])[0], run([hits_of(2)])[0]):
        assert late is not None
        assert merge(closing, late) == closing
    done = JoinState(phase=Phase.DONE, due_at=T0 + timedelta(hours=1))
    assert merge(closing, done) == done
    assert merge(done, closing) == done


def test_two_that_collect_are_put_together() -> None:
    """Hits that one saw and a page that the other saw: neither is lost, and it is complete."""
    with_hits = run([hits_of(2), page_of(0)])[0]
    without = run([page_of(1), page_of(0, text="later")])[0]
    assert with_hits is not None
    assert without is not None
    for first, second in ((with_hits, without), (without, with_hits)):
        state = merge(first, second)
        assert state.hits == hits_of(2)
        assert sorted(state.pages_by_rank) == [0, 1]
        closed, effect = resume(state)
        assert effect is not None
        assert closed is not None
        assert closed.close_reason is CloseReason.COMPLETE


def test_damage_is_overwritten() -> None:
    """A value that is no state neither stays nor stops the reading of the log."""
    changelog = Changelog({}, CODEC.merge)
    changelog.apply(0, 0, KEY, b"\xff{")
    assert CODEC.decode(KEY, changelog.data[KEY]) is None
    good = encode_state(JoinState(phase=Phase.DONE, due_at=T0))
    changelog.apply(0, 1, KEY, good)
    assert changelog.data[KEY] == good
    changelog.apply(0, 2, KEY, None)
    assert changelog.data == {}
    assert changelog.unread_before(0, 3) is None
    assert changelog.unread_before(0, 5) == 3
    assert changelog.unread_before(1, 0) is None
    changelog.forget(0)
    assert changelog.unread_before(0, 5) == 0
