"""Hostile, silent and hanging engines: no search raises, and none outlives its deadline."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citeflow.search import SearchOutcome, SearchStatus
from citeflow.workers import WorkerPool
from tests.support.engines import ANOMALY_PAGE, NOTHING_FOUND_PAGE, Reply, result, result_page
from tests.support.search_web import (
    LITE_NOTHING_FOUND,
    brave_body,
    lite_page,
    lite_result,
    played_web,
    searxng_body,
    unlimited,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEADLINE = 3.0
# What the specification allows a search to take beyond its deadline.
LIMIT = DEADLINE * 1.2
HIT = ("T", "https://a.example/", "S")

pages = st.one_of(
    st.binary(max_size=300),
    st.sampled_from([ANOMALY_PAGE, NOTHING_FOUND_PAGE, LITE_NOTHING_FOUND]).map(str.encode),
    st.text(alphabet="<>/=\"' classrehfutdina[]{}:,", max_size=200).map(str.encode),
    st.recursive(st.none() | st.booleans() | st.text(max_size=5), st.lists, max_leaves=20).map(
        lambda value: searxng_body([HIT], [value]).replace('"x"', str(value)).encode("utf-8")
    ),
    st.just(brave_body([HIT]).encode()),
)
values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=30)
headers = st.dictionaries(
    st.sampled_from(
        ["Retry-After", "Content-Type", "Content-Encoding", "Set-Cookie", "Location", "X-Odd"]
    ),
    values | st.sampled_from(["gzip", "br", "zstd", "5", "-1", "9" * 500, "/", "http://[", "//"]),
)
raw_responses = st.binary(max_size=200) | st.binary(max_size=100).map(lambda b: b"HTTP/1.1 " + b)
replies = st.one_of(
    st.builds(Reply, st.integers(200, 599), pages, headers),
    st.builds(Reply, st.sampled_from([200, 202, 204, 302, 429]), pages, headers),
    st.builds(Reply, raw=raw_responses),
    st.just(Reply(close=True)),
)
queries = st.text(alphabet=st.characters(codec=None, categories=None), max_size=60)


def unpack(outcome: SearchOutcome) -> None:
    """An outcome that can be stored, printed and told apart."""
    assert (outcome.status is SearchStatus.OK) == bool(outcome.hits)
    for text in (outcome.note or "", *(h.title + h.url + h.snippet for h in outcome.hits)):
        text.encode()
    if not outcome.status.answered:
        assert "not evidence that nothing matched" in (outcome.note or "")


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(query=queries, answers=st.tuples(replies, replies, replies, replies))
def test_no_page_status_or_header_raises(
    engines_pool: WorkerPool, query: str, answers: tuple[Reply, Reply, Reply, Reply]
) -> None:
    """Any bytes with any status and headers, from all four engines: an outcome in time."""

    async def search() -> tuple[SearchOutcome, float]:
        ddg, lite, searxng, brave = answers
        async with played_web(
            engines_pool, ddg=ddg, lite=lite, searxng=searxng, brave=brave
        ) as web:
            started = time.monotonic()
            outcome = await web.chain.search(query or "q", k=5, timeout=DEADLINE)
            return outcome, time.monotonic() - started

    outcome, elapsed = asyncio.run(search())
    unpack(outcome)
    assert elapsed <= LIMIT


@pytest.mark.parametrize(
    "reply",
    [
        Reply(delay=60.0),
        Reply(raw=b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 200, drip=0.05),
        Reply(raw=b"", drip=0.0, delay=60.0),
        Reply(body="x" * 1000, drip=0.05),
        Reply(429, headers={"Retry-After": "1"}),
        Reply(503),
    ],
    ids=["silent", "headers", "nothing", "body", "again", "busy"],
)
async def test_no_engine_outlives_the_deadline(engines_pool: WorkerPool, reply: Reply) -> None:
    """All four silent, dripping, or asking to come back: the deadline holds for all of them."""
    config = unlimited({"web_research_ddg_retry_attempts": 10})
    async with played_web(
        engines_pool, ddg=reply, lite=reply, searxng=reply, brave=reply, config=config
    ) as web:
        started = time.monotonic()
        outcome = await web.chain.search("one two three four five six", timeout=DEADLINE)
        elapsed = time.monotonic() - started
        unpack(outcome)
        assert elapsed <= LIMIT
        assert outcome.provenance.backends_tried == ("duckduckgo", "ddg_lite", "searxng", "brave")


async def test_redirects_stay_with_the_engine(engines_pool: WorkerPool) -> None:
    """A page that sends us to another server is not followed there, by any backend."""
    async with played_web(engines_pool, ddg=Reply(body="secret")) as other:
        away = Reply(302, headers={"Location": other.ddg.url})
        async with played_web(engines_pool, ddg=away, lite=away, searxng=away, brave=away) as web:
            outcome = await web.chain.search("q")
        assert outcome.status is SearchStatus.UNAVAILABLE
        assert other.requests == []


@pytest.fixture
async def hanging_pool() -> AsyncIterator[WorkerPool]:
    """Four workers whose client blocks natively, interpreter lock held, if the query says so."""
    pool = WorkerPool("tests.support.search_targets:hang_crash_or_search", size=4)
    pool.warm()
    yield pool
    pool.close()


class LoopWatch:
    """The longest time, in CPU seconds of this thread, between two turns of the loop.

    CPU time, because a busy machine may keep the whole process waiting for longer. What the tests
    before have left behind is kept from the garbage collector, whose look at all of it takes longer
    than what is measured here.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> LoopWatch:
        gc.collect()
        gc.freeze()
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        gc.unfreeze()

    async def _watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.thread_time() - before)
            await asyncio.sleep(0.001)


async def test_a_hundred_searches_while_one_backend_hangs(
    engines_pool: WorkerPool, hanging_pool: WorkerPool
) -> None:
    """All are answered by the other backend in time, the loop runs, nothing piles up."""
    timeout, deadline, searches = 6.0, 24.0, 100
    config = unlimited(
        {
            "web_research_search_timeout_seconds": timeout,
            "web_research_search_deadline_seconds": deadline,
        }
    )
    lite = Reply(body=lite_page([lite_result("L", "https://l.example/")]))
    process = psutil.Process()
    async with played_web(hanging_pool, lite=lite, lite_pool=engines_pool, config=config) as web:
        await web.chain.search("warm")
        memory = process.memory_info().rss
        async with LoopWatch() as watch:
            started = time.monotonic()
            outcomes = await asyncio.gather(
                *(web.chain.search(f"please hang {number}") for number in range(searches))
            )
            elapsed = time.monotonic() - started
        grown = process.memory_info().rss - memory
        again = await web.chain.search("after")
    assert [outcome.hits[0].url for outcome in outcomes] == ["https://l.example/"] * searches
    assert {outcome.provenance.backends_tried for outcome in outcomes} == {
        ("duckduckgo", "ddg_lite")
    }
    assert elapsed <= deadline * 1.2
    assert watch.longest <= 0.05
    assert grown <= 32_000_000
    # The circuit is open: the hanging backend costs the next search nothing.
    assert again.provenance.backends_tried == ("ddg_lite",)
    assert "left alone" in (again.note or "")


async def test_a_hundred_hanging_searches_leave_free_workers(hanging_pool: WorkerPool) -> None:
    """When everything hangs all searches end in time, and the next one finds a worker."""
    deadline = 8.0
    config = unlimited(
        {"web_research_search_deadline_seconds": deadline, "web_research_circuit_failures": 1000}
    )
    page = Reply(body=result_page([result("T", "https://a.example/")]))
    async with played_web(hanging_pool, ddg=page, lite=page, config=config) as web:
        assert (await web.chain.search("warm", timeout=20.0)).hits
        started = time.monotonic()
        outcomes = await asyncio.gather(
            *(web.chain.search(f"please hang {number}") for number in range(100))
        )
        elapsed = time.monotonic() - started
        assert {outcome.status for outcome in outcomes} == {SearchStatus.TIMEOUT}
        assert elapsed <= deadline * 1.2
        assert (await web.chain.search("after", timeout=20.0)).hits
    workers = [
        child
        for child in psutil.Process().children(recursive=True)
        if any("hang_crash_or_search" in word for word in _command(child))
    ]
    assert workers
    hanging_pool.close()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []


def _command(process: psutil.Process) -> list[str]:
    try:
        command: list[str] = process.cmdline()
    except psutil.Error:
        return []
    return command
