"""`python -m streams dev` as a person uses it: start, ask, Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator

import psutil
import pytest

SECTIONS = ("VERIFIED REFERENCE LINKS", "RECENT WEB SOURCES", "CITATION GUIDANCE:")


@contextlib.asynccontextmanager
async def dev(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "streams", "dev", *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in a terminal goes to the whole group
    )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def read_until(stream: asyncio.StreamReader, words: bytes) -> bytes:
    seen = b""
    async with asyncio.timeout(60):
        while words not in seen:
            chunk = await stream.read(4096)
            if not chunk:
                raise AssertionError(f"ended before {words!r}: {seen!r}")
            seen += chunk
    return seen


async def gone(pids: set[int], seconds: float = 3.0) -> bool:
    give_up = time.monotonic() + seconds
    while any(psutil.pid_exists(pid) for pid in pids):
        if time.monotonic() > give_up:
            return False
        await asyncio.sleep(0.05)
    return True


def descendants(pid: int) -> set[int]:
    return {child.pid for child in psutil.Process(pid).children(recursive=True)}


async def test_once_prints_the_corpus_and_ends() -> None:
    """One command: the corpus with its sections in order on stdout, exit 0, nothing left."""
    async with dev("--demo", "--once", "FastAPI streaming responses") as process:
        output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    assert b"Traceback" not in errors
    corpus = output.decode()
    places = [corpus.index(section) for section in SECTIONS]
    assert places == sorted(places)
    assert corpus.startswith(SECTIONS[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("busy", [False, True])
async def test_a_signal_ends_everything_in_time(number: signal.Signals, busy: bool) -> None:
    """Within 5 s of the signal all processes are gone, without a traceback."""
    async with dev("--demo") as process:
        assert process.stderr is not None
        banner = await read_until(process.stderr, b"Ctrl-C stops everything")
        if busy:
            address = banner.split(b"embedded broker on ")[1].split()[0].decode()
            request = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "streams", "request", "--broker", address, "Redis caching"
            )
            assert await request.wait() == 0
        family = descendants(process.pid) | {process.pid}
        assert len(family) >= 2
        os.killpg(process.pid, number)
        # The bound is the promise made to whoever presses Ctrl-C.
        errors = await asyncio.wait_for(process.stderr.read(), 5)
        await asyncio.wait_for(process.wait(), 5)
        assert await gone(family)
    assert b"Traceback" not in errors
    assert b"Error" not in errors
    assert process.returncode == 0


@pytest.mark.parametrize("seconds", [0.3, 0.8, 1.5, 2.5, 4.0])
async def test_a_signal_while_starting_ends_it_as_well(seconds: float) -> None:
    """Whatever it is at, Ctrl-C ends the command in time, without a traceback."""
    async with dev("--demo") as process:
        assert process.stderr is not None
        await asyncio.sleep(seconds)
        family = descendants(process.pid) | {process.pid}
        os.killpg(process.pid, signal.SIGINT)
        errors = await asyncio.wait_for(process.stderr.read(), 5)
        await asyncio.wait_for(process.wait(), 5)
        assert await gone(family)
    assert b"Traceback" not in errors


async def test_a_killed_parent_takes_its_broker_along() -> None:
    """SIGKILL of the command leaves neither broker nor worker processes behind."""
    async with dev("--demo") as process:
        assert process.stderr is not None
        await read_until(process.stderr, b"Ctrl-C stops everything")
        family = descendants(process.pid)
        process.kill()
        await process.wait()
        assert await gone(family, seconds=10)
