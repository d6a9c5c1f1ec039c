"""Searching waits while reading is behind."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from agents import backlog as backlog_module
from agents.backlog import Backlog

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def old(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


async def test_nothing_being_read_is_no_backlog() -> None:
    """Without hits in hand, or without a fetch agent, nobody waits."""
    backlog = Backlog(lambda: NOW)
    async with asyncio.timeout(5):
        await backlog.wait_below(lambda: 0.0, 60)
    with backlog.handling(old(90)):
        assert backlog.age == 90


async def test_searching_goes_on_when_only_younger_hits_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What counts is the age of the hits taken lately, not of those that take long to read."""
    backlog = Backlog(lambda: NOW)
    with backlog.handling(old(90)), backlog.handling(old(5)):
        assert backlog.age == 90  # another partition may be further ahead
    monkeypatch.setattr(backlog_module, "LINGER_SECONDS", 0.0)
    with backlog.handling(old(90)):
        waiting = asyncio.create_task(backlog.wait_below(lambda: 30.0, 60))
        await asyncio.sleep(0)
        with backlog.handling(old(31)):
            for _ in range(3):
                await asyncio.sleep(0)
            assert not waiting.done()
            with backlog.handling(old(29)):
                await asyncio.wait_for(waiting, 5)


async def test_searching_goes_on_when_all_is_read() -> None:
    """The last hits done with, and a moment later nothing waits; patience ends as well."""
    backlog = Backlog(lambda: NOW)
    with backlog.handling(old(90)):
        waiting = asyncio.create_task(backlog.wait_below(lambda: 30.0, 60))
        await asyncio.sleep(0)
    await asyncio.wait_for(waiting, 5)
    assert backlog.age == 0
    with backlog.handling(old(90)):
        await asyncio.wait_for(backlog.wait_below(lambda: 30.0, 0.01), 5)
