"""A limit that changes while it is in use."""

from __future__ import annotations

import asyncio

from agents.slots import Slots


async def test_the_limit_is_asked_at_each_use() -> None:
    """Raised, more get in; lowered, those inside stay and fewer come after; never none."""
    limit = 1
    slots = Slots(lambda: limit)
    inside, most = 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with slots:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(5)))
    assert most == 1
    limit, most = 3, 0
    await asyncio.gather(*(work() for _ in range(9)))
    assert most == 3
    limit, most = 0, 0
    await asyncio.gather(*(work() for _ in range(3)))
    assert most == 1


async def test_a_slot_is_not_lost_to_one_who_left() -> None:
    """Cancelled while waiting, or at the moment of its turn: the next one gets in."""
    slots = Slots(lambda: 1)
    await slots.acquire()
    waiting = [asyncio.create_task(slots.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    slots.release()  # the turn of the second, who leaves in the same moment
    waiting[1].cancel()
    assert await asyncio.wait_for(waiting[2], 5)
    slots.release()
    assert await asyncio.wait_for(slots.acquire(), 5)
