"""Worker processes: answers, order, faults, limits and the end of the parent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from citeflow.workers import WorkerCrashed, WorkerFailed, WorkerPool, WorkerTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGETS = "tests.support.worker_targets"
ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def pool(name: str = "act", size: int = 1, **options: int) -> Iterator[WorkerPool]:
    made = WorkerPool(f"{TARGETS}:{name}", size=size, **options)
    try:
        yield made
    finally:
        made.close()


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def ends(pid: int) -> bool:
    for _ in range(200):
        if not is_running(pid):
            return True
        await asyncio.sleep(0.05)
    return False


async def test_answers_belong_to_their_jobs() -> None:
    """Many concurrent jobs on two workers each get their own answer, whatever its size."""
    payloads = [bytes([i]) * (i * 5000) for i in range(100)]
    with pool("echo", 2) as workers:
        answers = await asyncio.gather(*(workers.run(p, timeout=30) for p in payloads))
    assert answers == payloads


async def test_jobs_run_in_the_order_they_were_asked_for() -> None:
    """One worker takes queued jobs first in, first out."""
    with pool() as workers:
        answers = await asyncio.gather(*(workers.run(b"go", timeout=30) for _ in range(20)))
    assert [int(answer.split()[2]) for answer in answers] == list(range(1, 21))


async def test_a_job_out_of_time_is_killed_and_the_next_one_runs() -> None:
    """A process that will not run any more code of its own is killed and replaced."""
    with pool() as workers:
        first = int((await workers.run(b"go", timeout=30)).split()[1])
        with pytest.raises(WorkerTimeout):
            await workers.run(b"stop", timeout=0.3)
        assert await ends(first)
        assert int((await workers.run(b"go", timeout=30)).split()[1]) != first


@pytest.mark.parametrize("payload", [b"exit 3", b"exit 0", b"segfault"])
async def test_a_crash_costs_one_job(payload: bytes) -> None:
    """A worker that dies fails the job it had; the jobs behind it are answered by a new one."""
    with pool() as workers:
        crash = asyncio.create_task(workers.run(payload, timeout=30))
        rest = [asyncio.create_task(workers.run(b"go", timeout=30)) for _ in range(3)]
        with pytest.raises(WorkerCrashed):
            await crash
        assert len(await asyncio.gather(*rest)) == 3


async def test_a_worker_that_died_idle_costs_no_job() -> None:
    """A worker killed between jobs is replaced without failing the next job."""
    with pool("pid") as workers:
        first = int(await workers.run(b"", timeout=30))
        os.kill(first, signal.SIGKILL)
        assert await ends(first)
        assert int(await workers.run(b"", timeout=30)) != first


async def test_an_exception_is_reported_and_the_worker_stays() -> None:
    """The target's exception arrives as WorkerFailed and does not cost the worker."""
    with pool() as workers:
        first = (await workers.run(b"go", timeout=30)).split()[1]
        with pytest.raises(WorkerFailed, match="ValueError: no good"):
            await workers.run(b"raise no good", timeout=30)
        assert (await workers.run(b"go", timeout=30)).split()[1] == first


@pytest.mark.parametrize("target", ["no.such.module:f", f"{TARGETS}:absent"])
async def test_a_target_that_cannot_be_loaded_fails_each_job(target: str) -> None:
    """A wrong target is reported by its own error, for every job, without hanging."""
    workers = WorkerPool(target, size=1)
    for _ in range(2):
        with pytest.raises(WorkerFailed, match=r"ModuleNotFoundError|AttributeError"):
            await workers.run(b"", timeout=30)
    workers.close()


async def test_output_and_input_of_a_job_do_not_disturb_the_answers() -> None:
    """Writes to stdout and stderr and reads from stdin stay out of the conversation."""
    with pool() as workers:
        assert (await workers.run(b"noise", timeout=30)).startswith(b"noise")
        assert (await workers.run(b"go", timeout=30)).startswith(b"go")


async def test_workers_ignore_the_interrupt_signal() -> None:
    """Ctrl-C is the parent's to handle: a worker that gets SIGINT answers on."""
    with pool() as workers:
        assert (await workers.run(b"interrupt", timeout=30)).startswith(b"interrupt")


async def test_a_worker_that_has_grown_is_replaced_after_its_answer() -> None:
    """max_worker_bytes is what one may hold between jobs; the job that grew it is answered."""
    with pool(max_worker_bytes=100_000_000) as workers:
        small = [await workers.run(b"memory 1000", timeout=30) for _ in range(2)]
        kept = await workers.run(b"keep 200000000", timeout=30)
        after = await workers.run(b"memory 1000", timeout=30)
    pids = [answer.split()[1] for answer in (*small, kept, after)]
    assert pids[0] == pids[1] == pids[2] != pids[3]


async def test_workers_are_replaced_after_their_number_of_jobs() -> None:
    """max_jobs_per_worker bounds the life of a process."""
    with pool(max_jobs_per_worker=2) as workers:
        pids = [(await workers.run(b"go", timeout=30)).split()[1] for _ in range(5)]
    assert [pids[0] == pids[1], pids[1] == pids[2], pids[2] == pids[3]] == [True, False, True]


async def test_the_memory_limit_ends_a_greedy_job() -> None:
    """A job that asks for more than the limit loses its worker, not the machine."""
    with pool(memory_limit_bytes=500_000_000) as workers:
        with pytest.raises(WorkerCrashed):
            await workers.run(b"memory 800000000", timeout=30)
        assert (await workers.run(b"go", timeout=30)).startswith(b"go")


async def test_an_answer_that_is_too_long_is_refused() -> None:
    """An answer above the message limit is the job's failure and leaves the worker usable."""
    with pool() as workers:
        with pytest.raises(WorkerFailed, match="too long"):
            await workers.run(b"large 64000001", timeout=30)
        assert (await workers.run(b"go", timeout=30)).startswith(b"go")


async def test_cancelled_jobs_do_not_mix_up_answers() -> None:
    """A cancelled job's answer goes to nobody else; one that waits is never run."""
    with pool() as workers:
        await workers.run(b"go", timeout=30)
        running = asyncio.create_task(workers.run(b"sleep 0.3", timeout=30))
        queued = asyncio.create_task(workers.run(b"sleep 100", timeout=200))
        await asyncio.sleep(0.1)
        running.cancel()
        queued.cancel()
        answer = await workers.run(b"go", timeout=30)
        assert answer.split()[0] == b"go"
        assert int(answer.split()[2]) == 3


def test_a_pool_serves_one_event_loop_after_another() -> None:
    """The same pool and the same process answer in two loops."""
    with pool("pid") as workers:
        answers = {asyncio.run(workers.run(b"", timeout=30)) for _ in range(2)}
    assert len(answers) == 1


async def test_sequential_use_starts_one_worker_and_warm_starts_all() -> None:
    """Processes are started on demand, not by the size of the machine."""
    with pool("pid", size=3) as workers:
        assert len({await workers.run(b"", timeout=30) for _ in range(10)}) == 1
        workers.warm()
        assert len(workers._threads) == 3


async def test_close_fails_what_runs_and_what_waits() -> None:
    """Closing ends every job with WorkerCrashed, ends the processes, and may be repeated."""
    workers = WorkerPool(f"{TARGETS}:act", size=1)
    first = int((await workers.run(b"go", timeout=30)).split()[1])
    tasks = [asyncio.create_task(workers.run(b"sleep 100", timeout=200)) for _ in range(2)]
    await asyncio.sleep(0.2)
    await asyncio.to_thread(workers.close)
    workers.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [WorkerCrashed, WorkerCrashed]
    assert not is_running(first)
    with pytest.raises(WorkerCrashed):
        await workers.run(b"go", timeout=30)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("ending", ["exit", "kill", "kill while busy"])
async def test_workers_do_not_outlive_their_parent(ending: str, tmp_path: Path) -> None:
    """The worker is gone when its parent ends by itself, is killed, or is killed during a job."""
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import asyncio, sys, threading
            from citeflow.workers import WorkerPool
            pool = WorkerPool("{TARGETS}:act", size=1)
            async def main():
                print((await pool.run(b"go", timeout=30)).split()[1].decode(), flush=True)
                job = asyncio.ensure_future(pool.run(sys.argv[1].encode(), timeout=100))
                await asyncio.sleep(float(sys.argv[2]))
            asyncio.run(main())
            """
        )
    )
    job, pause = ("stop", "0.2") if ending == "exit" else ("go", "100")
    if ending == "kill while busy":
        job = "sleep 100"
    parent = subprocess.Popen(  # noqa: ASYNC220 - starting a process takes no waiting
        [sys.executable, str(script), job, pause],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
    )
    assert parent.stdout is not None
    with parent.stdout:
        worker = int(await asyncio.to_thread(parent.stdout.readline))
    if ending != "exit":
        await asyncio.sleep(0.2)
        parent.kill()
    start = time.monotonic()
    await asyncio.to_thread(parent.wait)
    assert await ends(worker)
    assert time.monotonic() - start < 15
