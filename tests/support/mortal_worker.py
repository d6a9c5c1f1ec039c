"""A worker that kills itself with SIGKILL at a given moment: python -m tests.support.mortal_worker

The moment, in MORTAL_MOMENT: `recovering`, with some of its states recovered; `revoked`, when
partitions are taken from it; `stopping`, some way into a stop by SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any, NoReturn

from streams import runner
from streams.changelog import Changelog
from streams.cli import main

RECOVERED = 20


def _die(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead by now")


def _die_recovering() -> None:
    apply = Changelog.apply
    left = [RECOVERED]

    def counting(self: Changelog, *record: Any) -> None:
        apply(self, *record)
        left[0] -= 1
        if not left[0]:
            _die()

    Changelog.apply = counting  # type: ignore[method-assign]


def _die_revoked() -> None:
    build = runner.build_apps

    def building(*arguments: Any) -> Any:
        apps = build(*arguments)

        async def revoked(app: Any, partitions: Any, **_: object) -> None:
            if partitions:
                _die()

        for app in apps:
            app.on_partitions_revoked.connect(revoked, weak=False)
        return apps

    runner.build_apps = building


def _die_stopping() -> None:
    stop = runner.WorkerRunner.stop

    async def stopping(self: runner.WorkerRunner) -> bool:
        stopped = asyncio.ensure_future(stop(self))
        await asyncio.sleep(0.05)
        _die()
        return await stopped

    runner.WorkerRunner.stop = stopping  # type: ignore[method-assign]


if __name__ == "__main__":
    {"recovering": _die_recovering, "revoked": _die_revoked, "stopping": _die_stopping}[
        os.environ["MORTAL_MOMENT"]
    ]()
    sys.exit(main(["worker"]))
