"""Whatever stands still for too long ends the worker, with the reason; the rest does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streams.config import StreamConfig
from streams.watchdog import Watchdog, WorkerStuckError

CONFIG = StreamConfig(session_timeout=5.0, stall_timeout=100.0, broker_timeout=20.0)


class TpKey(str):
    """A partition as a key, with the fields that are read of it."""

    topic = "search.hits"
    partition = 3


class World:
    """An application and a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.consumer = SimpleNamespace(_acked={}, _committed_offset={}, _unacked_messages=set())
        self.app: Any = SimpleNamespace(
            conf=SimpleNamespace(id="app"),
            rebalancing=False,
            tables=SimpleNamespace(actives_ready=True),
            consumer=self.consumer,
        )
        self.dog = Watchdog([self.app], CONFIG, clock=lambda: self.now)

    def pass_time(self, seconds: float, *, broker: bool = True) -> None:
        """Look every second for so long."""
        for _ in range(int(seconds)):
            self.now += 1.0
            self.dog.look(broker_answers=broker)


def test_an_idle_worker_is_left_alone() -> None:
    """Nothing taken, nothing to commit: no reason to end, for ever."""
    World().pass_time(10_000)


def test_a_process_that_stood_still_ends() -> None:
    """After a pause longer than its session the process is no longer a member."""
    world = World()
    world.pass_time(3)
    world.now += 9.0
    with pytest.raises(WorkerStuckError, match="stood still for"):
        world.dog.look(broker_answers=True)


def test_a_broker_away_for_long_ends_it_and_a_short_absence_does_not() -> None:
    """Restarts of a broker are survived, its absence is not waited for without end."""
    world = World()
    for _ in range(5):
        world.pass_time(19, broker=False)
        world.pass_time(1)
    with pytest.raises(WorkerStuckError, match="no broker answers for 20 s"):
        world.pass_time(30, broker=False)


@pytest.mark.parametrize("fault", ["rebalancing", "recovering"])
def test_a_stalled_rebalance_or_recovery_ends_it(fault: str) -> None:
    """A worker without partitions, or whose states do not come, is replaced."""
    world = World()
    if fault == "rebalancing":
        world.app.rebalancing = True
    else:
        world.app.tables.actives_ready = False
    world.pass_time(100)
    with pytest.raises(WorkerStuckError, match="app: no partitions, or no recovery"):
        world.pass_time(2)


def test_commits_that_stop_end_it_and_commits_that_go_on_do_not() -> None:
    """Acknowledged events must be committed sooner or later."""
    world = World()
    key = TpKey("tp")
    world.consumer._acked = {key: [7]}
    for offset in range(10):
        world.consumer._committed_offset[key] = offset
        world.pass_time(90)
    with pytest.raises(WorkerStuckError, match=r"search\.hits-3 did not move"):
        world.pass_time(20)


def test_work_that_was_done_starts_the_wait_anew() -> None:
    """Two short waits with nothing to commit between them are not one long one."""
    world = World()
    key = TpKey("tp")
    for _ in range(5):
        world.consumer._acked = {key: [7]}
        world.pass_time(90)
        world.consumer._acked = {}
        world.pass_time(1)


def test_a_handler_that_never_ends_ends_it() -> None:
    """The same event in flight for longer than any handler may take."""
    world = World()
    world.consumer._unacked_messages = {_message(5)}
    with pytest.raises(WorkerStuckError, match="events in flight did not move"):
        world.pass_time(110)
    other = World()
    for offset in range(5):
        other.consumer._unacked_messages = {_message(offset)}
        other.pass_time(90)


class _Message(tuple[str, int, int]):
    topic = property(lambda self: self[0])
    partition = property(lambda self: self[1])
    offset = property(lambda self: self[2])


def _message(offset: int) -> _Message:
    return _Message(("t", 0, offset))
