"""Events are handled out of order and acknowledged in order."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.window import AckWindow


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=40),
    st.integers(1, 8),
)
@settings(max_examples=150, deadline=None)
def test_acknowledges_in_order_per_partition(work: list[tuple[int, int]], limit: int) -> None:
    """However long each takes, every event is acknowledged once, in order per partition."""
    acked: defaultdict[int, list[int]] = defaultdict(list)
    finished: set[int] = set()
    running = 0

    async def run() -> None:
        nonlocal running

        async def ack(event: int) -> None:
            await asyncio.sleep(0)
            partition = work[event][0]
            before = [n for n in range(event) if work[n][0] == partition]
            assert finished.issuperset(before)
            acked[partition].append(event)

        async def handle(event: int) -> None:
            nonlocal running
            running += 1
            assert running <= limit
            for _ in range(work[event][1]):
                await asyncio.sleep(0)
            running -= 1
            finished.add(event)

        window: AckWindow[int, int] = AckWindow(ack, limit=limit)
        for number, (partition, _) in enumerate(work):
            await window.submit(partition, number, handle)
        await window.drained()

    asyncio.run(run())
    for partition in {partition for partition, _ in work}:
        assert acked[partition] == [n for n, (p, _) in enumerate(work) if p == partition]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=40),
    st.integers(1, 8),
)
@settings(max_examples=150, deadline=None)
def test_a_lane_handles_one_at_a_time(work: list[tuple[int, int]], limit: int) -> None:
    """In the order of submission; lanes do not wait for each other while there is room."""
    handled: defaultdict[int, list[int]] = defaultdict(list)
    running: set[int] = set()
    together = 0

    async def run() -> None:
        async def handle(event: int) -> None:
            nonlocal together
            lane, turns = work[event]
            assert lane not in running
            running.add(lane)
            together = max(together, len(running))
            for _ in range(turns):
                await asyncio.sleep(0)
            running.remove(lane)
            handled[lane].append(event)

        async def ack(event: int) -> None:
            pass

        window: AckWindow[int, int] = AckWindow(ack, limit=limit)
        for number, (lane, _) in enumerate(work):
            # Two partitions of one number are one lane.
            await window.submit(number % 2, number, handle, lane=lane)
        await window.drained()
        assert not window._lanes

    asyncio.run(run())
    assert dict(handled) == {
        lane: [n for n, (other, _) in enumerate(work) if other == lane] for lane, _ in work
    }
    if limit >= len(work) and all(turns > 0 for _, turns in work):
        assert together == len({lane for lane, _ in work})


async def test_a_lane_that_stands_still_holds_up_no_other() -> None:
    """What waits for it takes no turn from the others, as long as there is room."""
    handled: list[int] = []
    stuck = asyncio.Event()

    async def handle(event: int) -> None:
        if event % 2 == 0:
            await stuck.wait()
        handled.append(event)

    async def ack(event: int) -> None:
        pass

    window: AckWindow[int, int] = AckWindow(ack, limit=2, held=8)
    for event in range(14):
        await asyncio.wait_for(window.submit(event % 2, event, handle, lane=event % 2), 5)
    for _ in range(50):
        await asyncio.sleep(0)
    assert handled == [1, 3, 5, 7, 9, 11, 13]
    stuck.set()
    await window.drained()
    assert sorted(handled) == list(range(14))


async def test_a_failed_handler_leaves_everything_behind_it_unacknowledged() -> None:
    """An event whose handler raised comes back, and so do the later ones of its partition."""
    acked: list[int] = []

    async def ack(event: int) -> None:
        acked.append(event)

    async def handle(event: int) -> None:
        if event == 1:
            raise RuntimeError("boom")

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    window: AckWindow[str, int] = AckWindow(ack, limit=2)
    for event in (0, 1, 2):
        await window.submit("a", event, handle)
    await window.submit("b", 3, handle)
    await window.drained()
    assert sorted(acked) == [0, 3]


def test_needs_room_for_one() -> None:
    """A window of no size would wait for ever."""
    with pytest.raises(ValueError, match="at least 1"):
        AckWindow(lambda event: asyncio.sleep(0), limit=0)


async def test_a_slow_event_holds_back_only_so_many_behind_it() -> None:
    """Done events waiting behind a slow one are bounded; then taking more has to wait."""
    release = asyncio.Event()
    started: list[int] = []

    async def ack(event: int) -> None:
        return None

    async def handle(event: int) -> None:
        started.append(event)
        if event == 0:
            await release.wait()

    async def submit_all(window: AckWindow[str, int]) -> None:
        for event in range(50):
            await window.submit("a", event, handle)

    window: AckWindow[str, int] = AckWindow(ack, limit=2, held=3)
    submitting = asyncio.create_task(submit_all(window))
    for _ in range(200):
        await asyncio.sleep(0)
    assert started == [0, 1, 2, 3, 4, 5]
    release.set()
    await submitting
    await window.drained()
    assert started == list(range(50))
