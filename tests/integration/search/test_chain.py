"""The chain: who is asked, what counts, and what is said about it."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from citeflow.search import SearchChain, SearchHit, SearchStatus
from citeflow.search.backend import BackendAnswer
from citeflow.search.duckduckgo import DuckDuckGoBackend
from citeflow.search.searxng import SearxngBackend
from citeflow.settings import SiteConfig
from tests.support.engines import PlayedEngine, Reply, result, result_page

HIT = SearchHit("Title", "https://a.example/", "Snippet")
OK = BackendAnswer(SearchStatus.OK, (HIT,))
EMPTY = BackendAnswer(SearchStatus.EMPTY)
CHALLENGED = BackendAnswer(SearchStatus.CHALLENGED, detail="HTTP 202")
LIMITED = BackendAnswer(SearchStatus.RATE_LIMITED, detail="HTTP 429", retry_after=40.0)
UNREACHABLE = BackendAnswer(SearchStatus.UNREACHABLE, detail="HTTP 503", retry_after=20.0)
CONFIG = SiteConfig(environ={})

_numbers = itertools.count()


class Scripted:
    """A backend that gives one answer, or raises it."""

    needs = "luck"
    retried = False
    per_minute_setting = "web_research_searxng_requests_per_minute"

    def __init__(
        self, name: str, answer: BackendAnswer | BaseException, *, available: bool = True
    ) -> None:
        self.name = name
        self.answer = answer
        self.asked: list[tuple[str, int, float]] = []
        self._available = available
        self.endpoint = f"{name} {next(_numbers)}"

    def available(self) -> bool:
        return self._available

    async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
        self.asked.append((query, k, timeout))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize(
    ("first", "second", "status", "tried", "challenged", "note"),
    [
        (OK, OK, SearchStatus.OK, ("one",), False, None),
        (CHALLENGED, OK, SearchStatus.OK, ("one", "two"), True, "answered by two (one challenged"),
        (EMPTY, OK, SearchStatus.OK, ("one", "two"), False, "answered by two"),
        (EMPTY, EMPTY, SearchStatus.EMPTY, ("one", "two"), False, None),
        (CHALLENGED, EMPTY, SearchStatus.CHALLENGED, ("one", "two"), True, "inconclusive"),
        (EMPTY, UNREACHABLE, SearchStatus.UNREACHABLE, ("one", "two"), False, "inconclusive"),
        (CHALLENGED, CHALLENGED, SearchStatus.CHALLENGED, ("one", "two"), True, "not evidence"),
        (UNREACHABLE, LIMITED, SearchStatus.RATE_LIMITED, ("one", "two"), False, "not evidence"),
        (RuntimeError("bug"), OK, SearchStatus.OK, ("one", "two"), False, "one could not be used"),
        (RuntimeError("bug"), EMPTY, SearchStatus.UNAVAILABLE, ("one", "two"), False, "inconcl"),
    ],
)
async def test_what_two_backends_say_together(
    first: BackendAnswer | Exception,
    second: BackendAnswer,
    status: SearchStatus,
    tried: tuple[str, ...],
    challenged: bool,
    note: str | None,
) -> None:
    """The first hits win, and a failure is never turned into an empty result."""
    chain = SearchChain(CONFIG, backends=[Scripted("one", first), Scripted("two", second)])
    outcome = await chain.search("q")
    assert outcome.status is status
    assert outcome.provenance.backends_tried == tried
    assert outcome.provenance.backend == (tried[-1] if status is SearchStatus.OK else None)
    assert outcome.provenance.challenged is challenged
    assert outcome.hits == ((HIT,) if status is SearchStatus.OK else ())
    if note is None:
        assert outcome.note is None
    else:
        assert note in (outcome.note or "")


async def test_shortest_wait_is_passed_on() -> None:
    """Of several `Retry-After` the shortest says when it is worth coming back."""
    chain = SearchChain(CONFIG, backends=[Scripted("one", LIMITED), Scripted("two", UNREACHABLE)])
    assert (await chain.search("q")).retry_after == 20.0


@pytest.mark.parametrize("query", ["", "   ", "\n\t", "\x00", "\ud800"])
async def test_blank_query_asks_nobody(query: str) -> None:
    """Nothing was asked for, so nothing is found, without a request."""
    backend = Scripted("one", OK)
    outcome = await SearchChain(CONFIG, backends=[backend]).search(query)
    assert (outcome.status, outcome.note, backend.asked) == (SearchStatus.EMPTY, None, [])
    assert outcome.provenance.backends_tried == ()
    assert outcome.provenance.query_used == ("" if query.strip() else query)


@pytest.mark.parametrize(
    ("k", "timeout", "asked_k", "asked_timeout"),
    [
        (5, None, 5, 20.0),
        (3, 1.5, 3, 1.5),
        (0, 0.0, 1, 20.0),
        (-4, float("nan"), 1, 20.0),
        (10**9, float("inf"), 100, 20.0),
    ],
)
async def test_odd_arguments_are_put_right(
    k: int, timeout: float | None, asked_k: int, asked_timeout: float
) -> None:
    """At least one hit is asked for, and there is always a finite timeout."""
    backend = Scripted("one", OK)
    await SearchChain(CONFIG, backends=[backend]).search("q", k, timeout)
    assert backend.asked == [("q", asked_k, pytest.approx(asked_timeout, abs=0.2))]


async def test_unavailable_backends_are_not_asked() -> None:
    """A backend that is not set up is skipped, and named when nobody is left."""
    missing = Scripted("one", OK, available=False)
    outcome = await SearchChain(CONFIG, backends=[missing]).search("q")
    assert outcome.status is SearchStatus.UNAVAILABLE
    assert "one needs luck" in (outcome.note or "")
    assert missing.asked == []
    both = SearchChain(CONFIG, backends=[missing, Scripted("two", EMPTY)])
    assert (await both.search("q")).status is SearchStatus.EMPTY


async def test_cancelling_a_search_cancels_it() -> None:
    """Cancellation is not an outcome."""
    chain = SearchChain(CONFIG, backends=[Scripted("one", asyncio.CancelledError())])
    with pytest.raises(asyncio.CancelledError):
        await chain.search("q")


@pytest.mark.parametrize("backends", ["searxng", "SearXNG, searxng", "nonsense,searxng"])
async def test_backends_come_from_the_settings(backends: str) -> None:
    """Names in any case, repeats and unknown ones included, are read at each search."""
    body = {"results": [{"title": "T", "url": "https://a.example/", "content": "S"}]}
    async with PlayedEngine(Reply(body=json.dumps(body))) as engine:
        values = {"web_research_backends": backends, "web_research_searxng_url": engine.origin}
        config = SiteConfig(environ={})
        async with SearchChain(config) as chain:
            config.reload({"web_research_backends": "searxng"})
            before = await chain.search("q")
            config.reload(values)
            after = await chain.search("q")
    assert before.status is SearchStatus.UNAVAILABLE
    assert "web_research_searxng_url" in (before.note or "")
    assert after.provenance.backends_tried == ("searxng",)
    assert after.hits == (SearchHit("T", "https://a.example/", "S"),)


async def test_no_known_backend_is_said() -> None:
    """A setting that names nothing known is a failure with a reason."""
    config = SiteConfig({"web_research_backends": "altavista"}, environ={})
    async with SearchChain(config) as chain:
        outcome = await chain.search("q")
    assert outcome.status is SearchStatus.UNAVAILABLE
    assert "web_research_backends" in (outcome.note or "")


@pytest.mark.parametrize("query", ["\ud800 surrogate", "NUL \x00 here", "word " * 20_000])
async def test_bad_queries_reach_real_engines_as_sendable_text(query: str) -> None:
    """Lone surrogates, NUL and 100 kB neither raise nor fail, and provenance says what was sent."""
    page = result_page([result("T", "https://a.example/", "S")])
    async with PlayedEngine(Reply(403)) as ddg, PlayedEngine(Reply(body=page)) as searxng:
        searxng.answer = Reply(body='{"results": [{"url": "https://a.example/"}]}')
        config = SiteConfig(
            {
                "web_research_searxng_url": searxng.origin,
                "web_research_ddg_retry_attempts": 1,
            },
            environ={},
        )
        backends = [DuckDuckGoBackend(config, engine_url=ddg.url), SearxngBackend(config)]
        outcome = await SearchChain(config, backends=backends).search(query)
        await backends[1].aclose()
    assert outcome.status is SearchStatus.OK
    assert outcome.provenance.backends_tried == ("duckduckgo", "searxng")
    sent = outcome.provenance.query_used
    assert [r.query for r in (*ddg.requests, *searxng.requests)] == [sent, sent]
