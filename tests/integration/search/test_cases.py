"""The numbered acceptance cases of the search, on servers that play the engines."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from citeflow.cli import main
from citeflow.search import SearchStatus, backend_names
from citeflow.settings import SiteConfig
from tests.support.engines import (
    ANOMALY_PAGE,
    NOTHING_FOUND_PAGE,
    PlayedEngine,
    Reply,
    Request,
    result,
    result_page,
    wrapped,
)
from tests.support.search_web import (
    LITE_NOTHING_FOUND,
    brave_body,
    lite_page,
    lite_result,
    played_web,
    searxng_body,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from citeflow.workers import WorkerPool

NOT_EVIDENCE = "not evidence that nothing matched"
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu"
FOUND = Reply(body=result_page([result("T", wrapped("https://a.example/"), "S")]))
LITE_FOUND = Reply(body=lite_page([lite_result("L", wrapped("https://l.example/"), "LS")]))
NOTHING = Reply(body=NOTHING_FOUND_PAGE)
LITE_NOTHING = Reply(body=LITE_NOTHING_FOUND)
CHALLENGE = Reply(202, ANOMALY_PAGE)


def words(count: int) -> str:
    return " ".join(WORDS.split()[:count])


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ["duckduckgo", "ddg_lite"]),
        (
            {"CITEFLOW_SEARXNG_URL": "  ", "CITEFLOW_BRAVE_API_KEY": "\t"},
            ["duckduckgo", "ddg_lite"],
        ),
        ({"CITEFLOW_BRAVE_API_KEY": "k"}, ["duckduckgo", "ddg_lite", "brave"]),
        ({"CITEFLOW_SEARXNG_URL": "http://s/"}, ["duckduckgo", "ddg_lite", "searxng"]),
        (
            {"CITEFLOW_BRAVE_API_KEY": "k", "CITEFLOW_WEB_RESEARCH_SEARXNG_URL": "http://s/"},
            ["duckduckgo", "ddg_lite", "searxng", "brave"],
        ),
    ],
)
def test_case_01_what_is_configured_is_asked_after_what_is_free(
    environ: dict[str, str], names: list[str]
) -> None:
    """Two key-free backends without configuration, blank values add none, a key adds its last."""
    assert backend_names(site_config=SiteConfig(environ=environ)) == names


async def test_case_02_the_first_backend_answers(engines_pool: WorkerPool) -> None:
    """One request, and nothing to say about it."""
    async with played_web(engines_pool, ddg=FOUND, lite=LITE_FOUND) as web:
        outcome = await web.chain.search(words(4))
    assert [hit.url for hit in outcome.hits] == ["https://a.example/"]
    assert (outcome.note, len(web.requests)) == (None, 1)
    assert outcome.provenance.backend == "duckduckgo"


async def test_case_03_the_second_backend_answers(engines_pool: WorkerPool) -> None:
    """After a challenge the next one is asked, and named."""
    async with played_web(engines_pool, ddg=CHALLENGE, lite=LITE_FOUND) as web:
        outcome = await web.chain.search(words(8))
    assert [hit.url for hit in outcome.hits] == ["https://l.example/"]
    assert "ddg_lite" in (outcome.note or "")
    assert outcome.provenance.backends_tried == ("duckduckgo", "ddg_lite")
    assert [request.query for request in web.requests] == [words(8)] * 2


async def test_case_04_an_honest_zero_is_one(engines_pool: WorkerPool) -> None:
    """Both found nothing for eight words: two requests with the query as it was, no note."""
    async with played_web(engines_pool, ddg=NOTHING, lite=LITE_NOTHING) as web:
        outcome = await web.chain.search(words(8))
    assert (outcome.status, outcome.hits, outcome.note) == (SearchStatus.EMPTY, (), None)
    assert [request.query for request in web.requests] == [words(8)] * 2


@pytest.mark.parametrize("challenge", [CHALLENGE, Reply(200, ANOMALY_PAGE), Reply(202)])
async def test_case_05_all_challenged_goes_down_the_ladder(
    engines_pool: WorkerPool, challenge: Reply
) -> None:
    """Twelve words are asked of both, then six, then three; the end is no evidence of absence."""
    asked: list[str] = []

    def answer(request: Request) -> Reply:
        asked.append(request.query)
        return challenge

    async with played_web(engines_pool, ddg=answer, lite=answer) as web:
        outcome = await web.chain.search(words(12))
    assert [len(query.split()) for query in asked] == [12, 12, 6, 6, 3, 3]
    assert (outcome.status, outcome.hits) == (SearchStatus.CHALLENGED, ())
    assert outcome.provenance.challenged
    assert outcome.provenance.query_used == words(3)
    assert outcome.provenance.backends_tried == ("duckduckgo", "ddg_lite") * 3
    assert NOT_EVIDENCE in (outcome.note or "")


async def test_case_05_a_short_query_has_no_broader_form(engines_pool: WorkerPool) -> None:
    """Three words stay three words, and the note is the same."""
    async with played_web(engines_pool) as web:
        outcome = await web.chain.search(words(3))
    assert len(web.requests) == 2
    assert outcome.provenance.query_used == words(3)
    assert NOT_EVIDENCE in (outcome.note or "")


async def test_case_06_a_broader_form_is_answered(engines_pool: WorkerPool) -> None:
    """Challenged at seven words, answered at three: the provenance says which query was used."""
    answer = lambda request: CHALLENGE if len(request.query.split()) > 3 else FOUND  # noqa: E731
    async with played_web(engines_pool, ddg=answer, lite=CHALLENGE) as web:
        outcome = await web.chain.search(words(7))
    assert outcome.status is SearchStatus.OK
    assert outcome.provenance.query_used == words(3)
    assert outcome.provenance.backends_tried == ("duckduckgo", "ddg_lite", "duckduckgo")
    assert words(3) in (outcome.note or "")


async def test_case_06_a_broader_form_without_results_is_an_honest_zero(
    engines_pool: WorkerPool,
) -> None:
    """When even the broader form matches nothing, that is an answer."""

    def answer(nothing: Reply) -> object:
        return lambda request: CHALLENGE if len(request.query.split()) > 3 else nothing

    async with played_web(engines_pool, ddg=answer(NOTHING), lite=answer(LITE_NOTHING)) as web:
        outcome = await web.chain.search(words(5))
    assert (outcome.status, outcome.provenance.challenged) == (SearchStatus.EMPTY, False)
    assert "no results for" in (outcome.note or "")


@pytest.mark.parametrize(
    ("ddg", "lite"), [(CHALLENGE, LITE_NOTHING), (NOTHING, CHALLENGE), (NOTHING, Reply(403))]
)
async def test_case_07_challenge_and_zero_are_inconclusive(
    engines_pool: WorkerPool, ddg: Reply, lite: Reply
) -> None:
    """One found nothing, one would not look: two requests, no broadening, no verdict."""
    async with played_web(engines_pool, ddg=ddg, lite=lite) as web:
        outcome = await web.chain.search(words(12))
    assert [request.query for request in web.requests] == [words(12)] * 2
    assert outcome.status.refused
    assert outcome.inconclusive
    assert "inconclusive" in (outcome.note or "")
    assert NOT_EVIDENCE in (outcome.note or "")


@pytest.fixture
def cli_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    monkeypatch.setenv("CITEFLOW_WEB_RESEARCH_BACKENDS", "searxng")
    return monkeypatch


@pytest.mark.parametrize(
    ("reply", "status", "retry_after", "code"),
    [
        (Reply(429, headers={"Retry-After": "30"}), "rate_limited", 30.0, 3),
        (Reply(418), "rate_limited", None, 3),
        (Reply(403), "blocked", None, 3),
        (Reply(503), "unreachable", None, 3),
        (Reply(202), "challenged", None, 3),
        (None, "unreachable", None, 3),
        (Reply(body=searxng_body()), "empty", None, 0),
        (Reply(body=searxng_body([("T", "https://a.example/", "S")])), "ok", None, 0),
    ],
)
async def test_case_08_each_failure_has_its_reason_and_exit_code(
    reply: Reply | None,
    status: str,
    retry_after: float | None,
    code: int,
    cli_settings: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """429, 403 and a refused connection are told apart by machines, and from an honest zero."""
    async with PlayedEngine(reply or Reply()) as engine:
        origin = engine.origin if reply else "http://127.0.0.1:9"
        cli_settings.setenv("CITEFLOW_SEARXNG_URL", origin)
        got = await asyncio.to_thread(main, ["search", "q", "--json-outcome"])
    printed = capsys.readouterr()
    outcome = json.loads(printed.out)
    assert (got, outcome["status"], outcome["retry_after"]) == (code, status, retry_after)
    assert f"status={status}" in printed.err


def test_case_09_lite_markup_in_any_order_and_quoting(engines_pool: WorkerPool) -> None:
    """Single or double quotes, href before or after class; a foreign `uddg` is no wrapper."""
    rows = [
        lite_result(f"T{i}", wrapped(f"https://{i}.example/"), quote=quote, class_first=first)
        for i, (quote, first) in enumerate([("'", False), ("'", True), ('"', False), ('"', True)])
    ]
    foreign = "https://evil.example/?uddg=javascript%3Aalert(1)"
    rows.append(lite_result("Foreign", foreign))
    rows.append(lite_result("Script", wrapped("javascript:alert(1)")))

    async def run() -> list[str]:
        async with played_web(engines_pool, lite=Reply(body=lite_page(rows))) as web:
            return [hit.url for hit in (await web.chain.search("q", k=10)).hits]

    assert asyncio.run(run()) == [*(f"https://{i}.example/" for i in range(4)), foreign]


@pytest.mark.parametrize("lite", [False, True])
async def test_case_10_snippets_stay_with_their_results(
    engines_pool: WorkerPool, lite: bool
) -> None:
    """Three results, the first without a snippet, on either page."""
    make, page = (lite_result, lite_page) if lite else (result, result_page)
    snippets = [None, "second", "third"]
    blocks = [make(f"T{i}", f"https://{i}.example/", text) for i, text in enumerate(snippets)]
    reply = Reply(body=page(blocks))
    async with played_web(
        engines_pool, ddg=CHALLENGE if lite else reply, lite=reply if lite else CHALLENGE
    ) as web:
        outcome = await web.chain.search("q")
    assert [(hit.title, hit.snippet) for hit in outcome.hits] == [
        ("T0", ""),
        ("T1", "second"),
        ("T2", "third"),
    ]


async def test_configured_backends_are_asked_last(engines_pool: WorkerPool) -> None:
    """SearXNG after the free ones, Brave after SearXNG, its key in a header and nowhere else."""
    body = brave_body([("<strong>T</strong> &amp; U", "https://b.example/", "D")])
    async with played_web(
        engines_pool, searxng=Reply(body=searxng_body()), brave=Reply(body=body)
    ) as web:
        outcome = await web.chain.search("q")
    assert outcome.provenance.backends_tried == ("duckduckgo", "ddg_lite", "searxng", "brave")
    assert (outcome.hits[0].title, outcome.hits[0].url) == ("T & U", "https://b.example/")
    (request,) = web.brave.requests
    assert request.headers["x-subscription-token"] == "key-0123456789"
    assert "key-0123456789" not in request.path + str(outcome)
