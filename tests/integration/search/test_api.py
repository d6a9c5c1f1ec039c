"""The public functions, on a SearXNG that is played on loopback."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import citeflow
from citeflow import cache
from citeflow.cli import main
from citeflow.findings import Severity, collect_findings
from citeflow.search import SearchProvenance, SearchStatus, Source, web_search_outcome
from citeflow.settings import SiteConfig
from tests.support.engines import PlayedEngine, Reply
from tests.support.search_web import searxng_body, threaded_engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RESULTS = [(f"T{i}", f"https://{i}.example/", f"S{i}") for i in range(8)]
SOURCES = [Source(*result) for result in RESULTS[:5]]
ASKED = SearchProvenance("searxng", False, "q", ("searxng",), False)


@pytest.fixture
def engine() -> Iterator[PlayedEngine]:
    with threaded_engine(Reply(body=searxng_body(RESULTS))) as played:
        yield played


def settings(engine: PlayedEngine, **values: object) -> SiteConfig:
    own = {"web_research_backends": "searxng", "web_research_searxng_url": engine.origin}
    return SiteConfig({**own, **values}, environ={})


def test_each_function_is_a_projection_of_the_next(engine: PlayedEngine) -> None:
    """Results; results and note; results, note and provenance: from one and the same search."""
    config = settings(engine)
    assert citeflow.web_search("q", site_config=config) == SOURCES
    assert citeflow.web_search_verbose("q", site_config=config) == (SOURCES, None)
    assert citeflow.web_search_with_provenance("q", site_config=config) == (SOURCES, None, ASKED)
    assert len(engine.requests) == 3


async def test_each_function_has_an_async_twin(engine: PlayedEngine) -> None:
    """The same answers, awaited."""
    config = settings(engine)
    assert await citeflow.aweb_search("q", site_config=config) == SOURCES
    assert await citeflow.aweb_search_verbose("q", site_config=config) == (SOURCES, None)
    found = await citeflow.aweb_search_with_provenance("q", site_config=config)
    assert found == (SOURCES, None, ASKED)


async def test_plain_functions_work_inside_a_running_loop(engine: PlayedEngine) -> None:
    """They block the loop, as anything that is not async does, and answer; findings get through."""
    assert citeflow.web_search("q", k=2, site_config=settings(engine)) == SOURCES[:2]
    engine.answer = Reply(403)
    with collect_findings() as findings:
        assert citeflow.web_search("q", site_config=settings(engine)) == []
    assert [finding.kind for finding in findings] == ["web_search_blocked", "web_search_failed"]


def test_plain_functions_work_from_many_threads(engine: PlayedEngine) -> None:
    """Sixteen threads, each with its own answer."""
    config = settings(engine)
    engine.answer = lambda request: Reply(
        body=searxng_body([(request.query, "https://a.example/", "")])
    )
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        found = list(
            threads.map(lambda i: citeflow.web_search(f"q{i}", site_config=config), range(64))
        )
    assert [sources[0].title for sources in found] == [f"q{i}" for i in range(64)]


@pytest.mark.parametrize(
    "query", ["", "  ", "\ud800", "\x00", "a\x00b\udfff", "word " * 20_000, "x" * 100_000, "\n'\""]
)
def test_no_query_raises(engine: PlayedEngine, query: str) -> None:
    """Lone surrogates, NUL, 100 kB: an answer from every function; blank ones ask nobody."""
    config = settings(engine)
    blank = not query.replace("\ud800", "").replace("\x00", "").strip()
    expected = [] if blank else SOURCES
    assert citeflow.web_search(query, site_config=config) == expected
    assert citeflow.web_search_verbose(query, site_config=config) == (expected, None)
    _, _, provenance = citeflow.web_search_with_provenance(query, site_config=config)
    assert provenance.backends_tried == (() if blank else ("searxng",))
    assert len(engine.requests) == (0 if blank else 3)


@pytest.mark.parametrize("k", [0, -5, 10**30, None, "3", float("nan"), float("inf")])
@pytest.mark.parametrize(
    "timeout_s", [0, -1.0, float("nan"), float("inf"), None, "x", 10**400], ids=range(7)
)
def test_no_number_raises(engine: PlayedEngine, k: object, timeout_s: object) -> None:
    """What is no count or no time is replaced by one that is."""
    arguments = (k, timeout_s)
    assert citeflow.web_search("q", *arguments, site_config=settings(engine))  # type: ignore[arg-type]
    assert citeflow.web_search(None, *arguments, site_config=settings(engine)) == []  # type: ignore[arg-type]


def test_findings_say_who_refused_and_that_the_search_failed(engine: PlayedEngine) -> None:
    """One warning per backend that refused, one note that there was no answer; none for a zero."""
    engine.answer = Reply(429, headers={"Retry-After": "7"})
    with collect_findings() as findings:
        citeflow.web_search("a topic", site_config=settings(engine))
    blocked, failed = findings
    assert (blocked.kind, blocked.severity) == ("web_search_blocked", Severity.WARN)
    assert blocked.dedup_key == "web_search_blocked:searxng"
    assert blocked.extra["status"] == "rate_limited"
    assert blocked.extra["retry_after"] == 7.0
    assert (failed.kind, failed.severity) == ("web_search_failed", Severity.INFO)
    engine.answer = Reply(body=searxng_body())
    with collect_findings() as findings:
        assert web_search_outcome("a topic", site_config=settings(engine)).hits == ()
    # Left alone for seven seconds: it was not asked, so it did not refuse.
    assert [finding.kind for finding in findings] == ["web_search_failed"]
    assert len(engine.requests) == 1


def test_engines_behind_searxng_that_failed_are_in_the_provenance(engine: PlayedEngine) -> None:
    """With hits as without; control characters in their names are not passed on."""
    broken = [["brave\x1b[2J", "too many requests"], ["qwant", "CAPTCHA"]]
    engine.answer = Reply(body=searxng_body(RESULTS, broken))
    outcome = web_search_outcome("q", site_config=settings(engine))
    (attempt,) = outcome.provenance.attempts
    assert attempt.unresponsive_engines == ("brave [2J: too many requests", "qwant: CAPTCHA")
    engine.answer = Reply(body=searxng_body([], broken))
    outcome = web_search_outcome("q", site_config=settings(engine))
    assert outcome.status is SearchStatus.CHALLENGED


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    monkeypatch.delenv(cache.NO_CACHE_ENV)
    return {"research_cache_dir": str(tmp_path / "cache")}


def test_case_21_a_search_with_hits_is_stored(
    engine: PlayedEngine, cached: dict[str, object]
) -> None:
    """The second time nobody is asked, and the provenance says so; another query is asked."""
    config = settings(engine, **cached)
    first = citeflow.web_search_with_provenance("q", site_config=config)
    again = citeflow.web_search_with_provenance("  q ", site_config=config)
    assert first == (SOURCES, None, ASKED)
    assert again == (SOURCES, None, SearchProvenance("searxng", True, "q", ("searxng",), False))
    assert len(engine.requests) == 1
    citeflow.web_search("q", k=3, site_config=config)
    citeflow.web_search("other", site_config=config)
    assert len(engine.requests) == 3


@pytest.mark.parametrize("reply", [Reply(body=searxng_body()), Reply(403)])
def test_case_21_nothing_and_failures_are_not_stored(
    engine: PlayedEngine, cached: dict[str, object], reply: Reply
) -> None:
    """What may be otherwise the next time is asked again."""
    engine.answer = reply
    config = settings(engine, **cached)
    for _ in range(2):
        citeflow.web_search("q", site_config=config)
    assert len(engine.requests) == 2


def test_case_21_an_old_search_is_asked_again(
    engine: PlayedEngine, cached: dict[str, object]
) -> None:
    """The age limit is a setting."""
    config = settings(engine, **cached, research_cache_ttl_seconds=0)
    for _ in range(2):
        citeflow.web_search("q", site_config=config)
    assert len(engine.requests) == 2


@pytest.mark.parametrize(
    "value",
    [
        1,
        [],
        {"hits": []},
        {"hits": None, "note": None, "backend": "b", "query_used": "q", "backends_tried": None},
        {"hits": [["t", "javascript:x", "s"]], "note": None, "backend": "b", "query_used": "q",
         "backends_tried": []},
        {"hits": [["t", "https://a.example/"]], "note": None, "backend": "b", "query_used": "q",
         "backends_tried": []},
    ],
    ids=range(6),
)  # fmt: skip
def test_case_21_a_poisoned_entry_is_a_miss(
    engine: PlayedEngine, cached: dict[str, object], value: object
) -> None:
    """Sound JSON of another shape, or with a link that is none, is asked for again."""
    config = settings(engine, **cached)
    citeflow.web_search("q", site_config=config)
    (path,) = cache.cache_dir(config).iterdir()
    assert cache.store(path.stem, value, site_config=config)
    assert citeflow.web_search("q", site_config=config) == SOURCES
    assert len(engine.requests) == 2


async def test_case_21_the_same_search_at_once_is_asked_once(
    engine: PlayedEngine, cached: dict[str, object]
) -> None:
    """Fifty at the same time, from one loop and from threads: one request for all."""
    engine.answer = Reply(body=searxng_body(RESULTS), delay=0.5)
    config = settings(engine, **cached)
    tasks = [citeflow.aweb_search("q", site_config=config) for _ in range(40)]
    threads = [asyncio.to_thread(citeflow.web_search, "q", site_config=config) for _ in range(10)]
    assert await asyncio.gather(*tasks, *threads) == [SOURCES] * 50
    assert len(engine.requests) == 1


async def test_case_21_a_cancelled_leader_leaves_the_work_to_another(
    engine: PlayedEngine, cached: dict[str, object]
) -> None:
    """The one that asks is cancelled; those that wait with it still get their answer."""
    engine.answer = Reply(body=searxng_body(RESULTS), delay=0.5)
    config = settings(engine, **cached)
    leader, *others = [
        asyncio.create_task(citeflow.aweb_search("q", site_config=config)) for _ in range(5)
    ]
    await asyncio.sleep(0.2)
    others[0].cancel()
    leader.cancel()
    found = await asyncio.gather(leader, *others, return_exceptions=True)
    assert [isinstance(item, asyncio.CancelledError) for item in found[:2]] == [True, True]
    assert found[2:] == [SOURCES] * 3
    assert len(engine.requests) == 2


async def test_case_21_a_follower_keeps_its_own_deadline(
    engine: PlayedEngine, cached: dict[str, object]
) -> None:
    """Who has less time than the one that asks is told so in time."""
    engine.answer = Reply(body=searxng_body(RESULTS), delay=2.0)
    config = settings(engine, **cached)
    leader = asyncio.create_task(citeflow.aweb_search("q", site_config=config))
    await asyncio.sleep(0.2)
    sources, note = await citeflow.aweb_search_verbose("q", timeout_s=0.3, site_config=config)
    assert (sources, "not evidence" in (note or "")) == ([], True)
    assert await leader == SOURCES


def test_case_21_a_disk_that_hangs_is_no_cache(
    engine: PlayedEngine, cached: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search goes on without it after a second."""
    monkeypatch.setattr(cache, "load", lambda *_, **__: time.sleep(4))
    started = time.monotonic()
    assert citeflow.web_search("q", site_config=settings(engine, **cached)) == SOURCES
    assert time.monotonic() - started < 3.5


def test_cli_prints_json_and_says_how_it_went(
    engine: PlayedEngine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list on standard output in ASCII, note and provenance on standard error."""
    monkeypatch.setenv("CITEFLOW_SEARXNG_URL", engine.origin)
    monkeypatch.setenv("CITEFLOW_WEB_RESEARCH_BACKENDS", "searxng")
    engine.answer = Reply(
        body=searxng_body([("日\u202e\x9b", "https://a.example/", "S"), *RESULTS])
    )
    assert main(["search", "q", "-k", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.out.isascii()
    assert [hit["url"] for hit in json.loads(printed.out)] == [
        "https://a.example/",
        "https://0.example/",
    ]
    assert json.loads(printed.out)[0].keys() == {"title", "url", "snippet"}
    assert printed.err == (
        "provenance: backend=searxng cached=false query_used='q' tried=searxng "
        "challenged=false status=ok\n"
    )
    engine.answer = Reply(202)
    assert main(["search", "q", "--timeout-s", "5"]) == 3
    printed = capsys.readouterr()
    assert json.loads(printed.out) == []
    assert "note: searxng challenged" in printed.err
    assert "backend=none" in printed.err
    assert "challenged=true" in printed.err


@pytest.mark.parametrize("arguments", [[], ["q", "-k", "x"], ["q", "--timeout-s", "nan"]])
def test_cli_refuses_wrong_usage(arguments: list[str]) -> None:
    """Exit status 2, as for every command."""
    with pytest.raises(SystemExit) as exited:
        main(["search", *arguments])
    assert exited.value.code == 2


def test_cli_survives_arguments_that_are_no_text(engine: PlayedEngine) -> None:
    """`python -m citeflow search $'\\xff caching'` is an ordinary search."""
    environment = {
        "PATH": "",
        "CITEFLOW_SEARXNG_URL": engine.origin,
        "CITEFLOW_WEB_RESEARCH_BACKENDS": "searxng",
        "CITEFLOW_RESEARCH_NO_CACHE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "citeflow", "search", b"\xff caching"],
        env=environment, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, len(json.loads(done.stdout))) == (0, 5)
    (request,) = engine.requests
    assert request.query == "caching"


def test_a_key_is_never_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The settings command says that there is one, a search says nothing of it."""
    monkeypatch.setenv("CITEFLOW_BRAVE_API_KEY", "secret-é-key")
    monkeypatch.setenv("CITEFLOW_WEB_RESEARCH_BACKENDS", "brave")
    assert main(["settings", "brave_api_key"]) == 0
    assert main(["settings", "brave_api_key", "--json"]) == 0
    assert main(["search", "q"]) == 3
    printed = capsys.readouterr()
    assert "(set)" in printed.out
    assert "brave_api_key" in printed.err
    assert "secret" not in printed.out + printed.err
