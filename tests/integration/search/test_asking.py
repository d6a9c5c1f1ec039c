"""Retries, turns and circuits of a whole chain, on a played clock where waiting is the subject."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from citeflow.search import SearchChain, SearchHit, SearchStatus
from citeflow.search.ask import Time
from citeflow.search.backend import BackendAnswer
from citeflow.search.health import Health
from citeflow.settings import SiteConfig
from tests.support.engines import Reply, Request, result, result_page
from tests.support.search_web import LITE_NOTHING_FOUND, played_web, unlimited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citeflow.workers import WorkerPool

OK = BackendAnswer(SearchStatus.OK, (SearchHit("T", "https://a.example/", "S"),))
DOWN = BackendAnswer(SearchStatus.UNREACHABLE, detail="HTTP 503")
CHALLENGED = BackendAnswer(SearchStatus.CHALLENGED)


class Scripted:
    """A backend that gives one answer after the other, then the last one again."""

    needs = "luck"
    per_minute_setting = "web_research_brave_requests_per_minute"

    def __init__(self, *answers: BackendAnswer, name: str = "one", retried: bool = True) -> None:
        self.name = self.endpoint = name
        self.retried = retried
        self.answers = list(answers)
        self.asked = 0

    def available(self) -> bool:
        return True

    async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
        self.asked += 1
        await asyncio.sleep(0)
        return self.answers[min(self.asked, len(self.answers)) - 1]

    async def aclose(self) -> None:
        pass


class Sleeper:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        await asyncio.sleep(0)

    def chain(
        self, *backends: Scripted, health: Health | None = None, **values: object
    ) -> SearchChain:
        config = SiteConfig({"web_research_brave_requests_per_minute": 0, **values}, environ={})
        clockwork = Time(self.sleep, lambda low, high: (low + high) / 2)
        return SearchChain(
            config, backends=backends, health=health or Health(), clockwork=clockwork
        )


@pytest.mark.parametrize(
    ("answers", "status", "asked", "slept"),
    [
        ([DOWN], SearchStatus.UNREACHABLE, 3, [0.75, 1.25]),
        ([DOWN, OK], SearchStatus.OK, 2, [0.75]),
        ([BackendAnswer(SearchStatus.RATE_LIMITED), OK], SearchStatus.OK, 2, [0.75]),
        ([BackendAnswer(SearchStatus.RATE_LIMITED, retry_after=0.0), OK], SearchStatus.OK, 2, [0]),
        (
            [BackendAnswer(SearchStatus.RATE_LIMITED, retry_after=60.0), OK],
            SearchStatus.RATE_LIMITED,
            1,
            [],
        ),
        ([CHALLENGED, OK], SearchStatus.CHALLENGED, 1, []),
        ([BackendAnswer(SearchStatus.BLOCKED), OK], SearchStatus.BLOCKED, 1, []),
    ],
)
async def test_what_may_pass_is_asked_again_after_a_wait(
    answers: Sequence[BackendAnswer], status: SearchStatus, asked: int, slept: list[float]
) -> None:
    """Three attempts with 0.5 to 1.0 and 1.0 to 1.5 s between them; refusals are not repeated."""
    backend, sleeper = Scripted(*answers), Sleeper()
    outcome = await sleeper.chain(backend).search("q")
    assert (outcome.status, backend.asked, sleeper.slept) == (status, asked, slept)
    assert outcome.provenance.attempts[0].requests == asked


async def test_a_short_retry_after_is_waited_out(engines_pool: WorkerPool) -> None:
    """A second asked for is a second given; then the same backend answers."""
    page = Reply(body=result_page([result("T", "https://a.example/")]))
    asked: list[float] = []

    def answer(_: Request) -> Reply:
        asked.append(time.monotonic())
        return Reply(429, headers={"Retry-After": "1"}) if len(asked) == 1 else page

    async with played_web(engines_pool, ddg=answer) as web:
        outcome = await web.chain.search("q")
    assert outcome.provenance.backends_tried == ("duckduckgo",)
    assert outcome.status is SearchStatus.OK
    assert asked[1] - asked[0] >= 1.0


async def test_a_circuit_is_seen_in_the_provenance_and_in_the_state(
    engines_pool: WorkerPool,
) -> None:
    """After five refusals in a row the engine is left alone, and everything says so."""
    async with played_web(engines_pool, ddg=Reply(403), lite=Reply(body=LITE_NOTHING_FOUND)) as web:
        for _ in range(7):
            outcome = await web.chain.search("one two three four five six")
        assert len(web.ddg.requests) == 5
        assert len(web.lite.requests) == 7
        ddg = {state.endpoint: state for state in web.health.states()}[web.ddg.url]
    # Known to refuse: that nobody asked it again does not make the zero an honest one.
    assert (outcome.status, outcome.inconclusive) == (SearchStatus.BLOCKED, True)
    assert outcome.provenance.backends_tried == ("ddg_lite",)
    left_out = outcome.provenance.attempts[0]
    assert (left_out.backend, left_out.requests, left_out.circuit_open) == ("duckduckgo", 0, True)
    assert (ddg.circuit_open, ddg.requests, ddg.not_asked) == (True, {"blocked": 5}, 2)
    assert 0 < ddg.opens_for <= 60


async def test_circuits_do_not_broaden_what_nobody_was_asked() -> None:
    """With every circuit open after challenges, a long query ends at once."""
    one, two = Scripted(CHALLENGED), Scripted(CHALLENGED, name="two")
    chain = Sleeper().chain(one, two, web_research_circuit_failures=1)
    await chain.search("a b c d e f g h")
    before = one.asked
    outcome = await chain.search("a b c d e f g h")
    assert (one.asked, before) == (1, 1)
    assert len(outcome.provenance.attempts) == 2
    assert (outcome.status, outcome.provenance.challenged) == (SearchStatus.CHALLENGED, True)


@pytest.mark.parametrize(("workers", "at_once"), [(1, 10), (5, 2)])
async def test_the_budget_is_shared_by_all_and_divided_among_workers(
    workers: int, at_once: int
) -> None:
    """60 a minute let ten go at once, a fifth of it two; who has no time to wait learns when."""
    health, backend = Health(), Scripted(OK)
    chains = [
        Sleeper().chain(
            backend,
            health=health,
            web_research_brave_requests_per_minute=60,
            web_research_workers_per_address=workers,
        )
        for _ in range(20)
    ]
    outcomes = [await chain.search("q", timeout=0.5) for chain in chains]
    assert sum(outcome.status is SearchStatus.OK for outcome in outcomes) == at_once
    last = outcomes[-1]
    assert last.status is SearchStatus.RATE_LIMITED
    assert "our own" in (last.note or "")
    assert last.provenance.backends_tried == ()
    assert 0.5 < (last.retry_after or 0) <= 60 * workers / 60


async def test_a_spent_budget_moves_on_to_the_next_backend() -> None:
    """A search waits five seconds for its turn, not longer, while another backend can be asked."""
    one, two = Scripted(OK), Scripted(OK, name="two")
    two.per_minute_setting = "web_research_searxng_requests_per_minute"
    chain = Sleeper().chain(one, two, web_research_brave_requests_per_minute=6)
    backends = [(await chain.search("q")).provenance.backend for _ in range(4)]
    assert backends == ["one", "two", "two", "two"]


async def test_after_an_open_circuit_one_search_tries_and_the_others_wait() -> None:
    """Twenty searches come when the time is up: the first asks, all are answered."""
    limited = BackendAnswer(SearchStatus.RATE_LIMITED, retry_after=0.3)
    backend = Scripted(limited, OK, retried=False)
    config = SiteConfig({"web_research_brave_requests_per_minute": 0}, environ={})
    chain = SearchChain(config, backends=[backend], health=Health())
    assert (await chain.search("q")).retry_after == 0.3
    assert (await chain.search("q")).provenance.backends_tried == ()
    await asyncio.sleep(0.35)
    outcomes = await asyncio.gather(*(chain.search("q") for _ in range(20)))
    assert {outcome.status for outcome in outcomes} == {SearchStatus.OK}


async def test_cancelling_a_search_frees_the_trial() -> None:
    """The one that tries is cancelled: the next one may."""
    limited = BackendAnswer(SearchStatus.RATE_LIMITED, retry_after=0.2)

    class Slow(Scripted):
        async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
            if query == "slow":
                await asyncio.sleep(60)
            return await super().search(query, k, timeout)

    backend = Slow(limited, OK, retried=False)
    chain = SearchChain(unlimited(), backends=[backend], health=Health())
    await chain.search("q")
    await asyncio.sleep(0.25)
    trial = asyncio.create_task(chain.search("slow"))
    await asyncio.sleep(0.05)
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    assert (await chain.search("q", timeout=5.0)).status is SearchStatus.OK
