"""The DuckDuckGo backend against a server that plays DuckDuckGo, through real worker processes."""

from __future__ import annotations

import asyncio
import gzip
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from citeflow.search import SearchStatus
from citeflow.search.duckduckgo import JOB_TARGET, DuckDuckGoBackend
from citeflow.settings import SiteConfig
from citeflow.workers import WorkerPool
from tests.support.engines import (
    ANOMALY_PAGE,
    NOTHING_FOUND_PAGE,
    PlayedEngine,
    Reply,
    result,
    result_page,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = result_page(
    [result(f"Title {i}", wrapped(f"https://{i}.example/a%20b"), f"Snippet {i}") for i in range(8)]
)
CONFIG = SiteConfig(environ={})


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(JOB_TARGET, size=1)
    yield made
    made.close()


def worker_pids() -> set[int]:
    children = psutil.Process().children(recursive=True)
    return {child.pid for child in children if child.status() != psutil.STATUS_ZOMBIE}


async def test_hits_in_the_order_of_the_page(pool: WorkerPool) -> None:
    """One request with the query as it is; the first k results, in order, links resolved."""
    async with PlayedEngine(Reply(body=PAGE)) as engine:
        backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
        answer = await backend.search("c++ & rust 日本", 5, 20.0)
    assert answer.status is SearchStatus.OK
    assert [hit.url for hit in answer.hits] == [f"https://{i}.example/a%20b" for i in range(5)]
    assert [hit.snippet for hit in answer.hits] == [f"Snippet {i}" for i in range(5)]
    assert [(r.method, r.query) for r in engine.requests] == [("POST", "c++ & rust 日本")]


@pytest.mark.parametrize(
    ("reply", "status", "retry_after"),
    [
        (Reply(202, ANOMALY_PAGE), SearchStatus.CHALLENGED, None),
        (Reply(200, ANOMALY_PAGE), SearchStatus.CHALLENGED, None),
        (Reply(429, headers={"Retry-After": "17"}), SearchStatus.RATE_LIMITED, 17.0),
        (Reply(418), SearchStatus.RATE_LIMITED, None),
        (Reply(403), SearchStatus.BLOCKED, None),
        (Reply(400), SearchStatus.BLOCKED, None),
        (Reply(500), SearchStatus.UNREACHABLE, None),
        (Reply(503, headers={"Retry-After": "soon"}), SearchStatus.UNREACHABLE, None),
        (Reply(close=True), SearchStatus.UNREACHABLE, None),
        (Reply(200, "<html><body>new design</body></html>"), SearchStatus.UNAVAILABLE, None),
        (Reply(200, b"\xff\xfe\x00"), SearchStatus.UNAVAILABLE, None),
        (Reply(200, b"x" * 5_000_000), SearchStatus.UNAVAILABLE, None),
        (Reply(302, headers={"Location": "/html/"}), SearchStatus.UNAVAILABLE, None),
        (Reply(200, NOTHING_FOUND_PAGE), SearchStatus.EMPTY, None),
    ],
)
async def test_every_answer_has_its_status(
    pool: WorkerPool, reply: Reply, status: SearchStatus, retry_after: float | None
) -> None:
    """A refusal, a failure and an honest nothing are told apart."""
    async with PlayedEngine(reply) as engine:
        backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
        answer = await backend.search("q", 5, 20.0)
    assert (answer.status, answer.hits, answer.retry_after) == (status, (), retry_after)


async def test_a_challenge_status_with_results_is_an_answer(pool: WorkerPool) -> None:
    """HTTP 202 is a challenge only when the page holds no results."""
    async with PlayedEngine(Reply(202, PAGE)) as engine:
        backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
        answer = await backend.search("q", 5, 20.0)
    assert (answer.status, len(answer.hits)) == (SearchStatus.OK, 5)


async def test_refused_connection_is_unreachable(pool: WorkerPool) -> None:
    """Nobody listening is neither an empty result nor an exception."""
    async with PlayedEngine(Reply()) as engine:
        url = engine.url
    answer = await DuckDuckGoBackend(CONFIG, engine_url=url, pool=pool).search("q", 5, 20.0)
    assert (answer.status, answer.detail) == (SearchStatus.UNREACHABLE, "no connection")


async def test_compressed_bomb_stops_at_the_cap(pool: WorkerPool) -> None:
    """The cap counts what comes out of the decompressor."""
    bomb = gzip.compress(b"x" * 100_000_000)
    reply = Reply(200, bomb, {"Content-Encoding": "gzip", "Content-Type": "text/html"})
    async with PlayedEngine(reply) as engine:
        backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
        answer = await backend.search("q", 5, 20.0)
    assert (answer.status, answer.detail) == (
        SearchStatus.UNAVAILABLE,
        "its page is larger than the cap",
    )


@pytest.mark.parametrize("reply", [Reply(delay=60.0), Reply(body=PAGE, drip=0.05)])
async def test_slow_engine_is_cut_without_a_retry(pool: WorkerPool, reply: Reply) -> None:
    """A silent and a dripping engine cost one timeout, and the worker lives on."""
    await DuckDuckGoBackend(CONFIG, engine_url="http://127.0.0.1:9/", pool=pool).search(
        "q", 5, 20.0
    )
    before = worker_pids()
    async with PlayedEngine(reply) as engine:
        backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
        started = time.monotonic()
        answer = await backend.search("q", 5, 2.0)
        elapsed = time.monotonic() - started
    assert (answer.status, len(engine.requests)) == (SearchStatus.TIMEOUT, 1)
    assert elapsed < 10.0
    assert worker_pids() == before


async def test_native_hang_is_killed_and_the_next_search_works() -> None:
    """A client that never gives the interpreter lock back is ended at the deadline."""
    others = worker_pids()
    pool = WorkerPool("tests.support.search_targets:hang_crash_or_search", size=1)
    try:
        async with PlayedEngine(Reply(body=PAGE)) as engine:
            backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
            assert (await backend.search("warm", 5, 20.0)).status is SearchStatus.OK
            (hung_pid,) = worker_pids() - others
            started = time.monotonic()
            hung = await backend.search("please hang", 5, 1.0)
            assert time.monotonic() - started < 10.0
            after = await backend.search("next", 5, 20.0)
        assert hung.status is SearchStatus.TIMEOUT
        assert after.status is SearchStatus.OK
        assert [r.query for r in engine.requests] == ["warm", "next"]
        assert not psutil.pid_exists(hung_pid)
    finally:
        await asyncio.to_thread(pool.close)
    assert worker_pids() == others


async def test_crash_of_the_native_client_is_a_failure() -> None:
    """A worker that dies costs one answer."""
    pool = WorkerPool("tests.support.search_targets:hang_crash_or_search", size=1)
    try:
        async with PlayedEngine(Reply(body=PAGE)) as engine:
            backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
            crashed = await backend.search("please crash", 5, 20.0)
            after = await backend.search("next", 5, 20.0)
    finally:
        await asyncio.to_thread(pool.close)
    assert (crashed.status, after.status) == (SearchStatus.UNAVAILABLE, SearchStatus.OK)


async def test_waiting_for_a_busy_pool_counts_as_time() -> None:
    """Searches queued behind a hung one return by their own deadline too."""
    pool = WorkerPool("tests.support.search_targets:hang_crash_or_search", size=1)
    try:
        async with PlayedEngine(Reply(body=PAGE)) as engine:
            backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
            assert (await backend.search("warm", 5, 20.0)).status is SearchStatus.OK
            started = time.monotonic()
            answers = await asyncio.gather(
                *(backend.search("please hang", 5, 2.0) for _ in range(8))
            )
            elapsed = time.monotonic() - started
    finally:
        await asyncio.to_thread(pool.close)
    assert {answer.status for answer in answers} == {SearchStatus.TIMEOUT}
    assert elapsed < 8.0  # one after another it would be 16


async def test_missing_package_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ddgs nothing is asked and the search says what is missing."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not DuckDuckGoBackend(CONFIG).available()


async def test_ambient_proxies_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only citeflow's own settings say where requests go."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    pool = WorkerPool(JOB_TARGET, size=1)
    try:
        async with PlayedEngine(Reply(body=PAGE)) as engine:
            backend = DuckDuckGoBackend(CONFIG, engine_url=engine.url, pool=pool)
            answer = await backend.search("q", 5, 20.0)
    finally:
        await asyncio.to_thread(pool.close)
    assert answer.status is SearchStatus.OK
