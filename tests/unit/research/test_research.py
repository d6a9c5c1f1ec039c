"""The composition: researcher, assembly, service, command line and public API."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys

import pytest

import citeflow
from citeflow import cli
from citeflow.fetch.outcome import FetchOutcome, FetchStatus
from citeflow.findings import collect_findings
from citeflow.research import ASSEMBLE_SETTINGS, ResearchService, assemble
from citeflow.search.outcome import SearchHit
from citeflow.settings import REGISTRY, SiteConfig
from citeflow.web import WebResearcher
from tests.support.research import F1, F2, NOW, FakeFetcher, FakePool, FakeSearch, FakeWeb, config
from tests.support.research import five as five_results


def hits(count):
    return [SearchHit(f"T{i}", f"https://h{i}.example/x", F1) for i in range(count)]


class CountingFetcher:
    """Counts how many pages are read at once; later pages finish first."""

    def __init__(self):
        self.now = self.most = 0

    async def fetch(self, url, *, timeout=None):
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20 - int(url[9])):
            await asyncio.sleep(0)
        self.now -= 1
        return FetchOutcome(FetchStatus.OK, url, text=url)


async def test_pages_are_read_within_the_limit_and_in_order():
    """At most `web_research_max_concurrent` pages are read at once, and the order is kept."""
    fetcher = CountingFetcher()
    web = WebResearcher(
        site_config=config(web_research_max_concurrent=3),
        search=FakeSearch(*hits(8)),
        fetcher=fetcher,
    )
    found = await web.search("q", num_results=8)
    assert [each["content"] for each in found] == [f"https://h{i}.example/x" for i in range(8)]
    assert fetcher.most == 3


async def test_a_limit_of_zero_behaves_as_one():
    """A limit of zero does not hang."""
    fetcher = CountingFetcher()
    web = WebResearcher(
        site_config=config(web_research_max_concurrent=0),
        search=FakeSearch(*hits(3)),
        fetcher=fetcher,
    )
    assert len(await asyncio.wait_for(web.search("q"), 10)) == 3
    assert fetcher.most == 1


async def test_results_without_an_address_are_left_out():
    """A blank address is dropped and the others keep their position."""
    search = FakeSearch(SearchHit("A", "  ", F1), SearchHit("B", "https://b.example/x", F2))
    web = WebResearcher(site_config=config(), search=search, fetcher=FakeFetcher({}))
    found = await web.search_simple("q")
    assert [(each["url"], each["search_position"]) for each in found] == [
        ("https://b.example/x", 1)
    ]


class RaisingFetcher:
    async def fetch(self, url, *, timeout=None):
        raise RuntimeError("broken")


async def test_a_raising_fetcher_costs_its_page_only():
    """Failures are one finding per host, also for a fetcher that raises."""
    web = WebResearcher(site_config=config(), search=FakeSearch(*hits(2)), fetcher=RaisingFetcher())
    with collect_findings() as findings:
        found = await web.search("q")
    assert [each["content"] for each in found] == ["", ""]
    assert [f.extra["host"] for f in findings] == ["h0.example", "h1.example"]


def test_the_prompt_block():
    """Entries are numbered, and the block ends before the entry that would exceed the limit."""
    web = WebResearcher(site_config=config())
    results = [
        {"title": "A", "url": "https://a.example/x", "snippet": "s1", "content": "one\ntwo"},
        {"url": "https://b.example/x", "snippet": "s2", "content": ""},
    ]
    header = "WEB RESEARCH (current sources \u2014 cite these, do not fabricate URLs):"
    first = "\n1. [A](https://a.example/x)\n   s1\n   Key content: one"
    second = "\n2. [Untitled](https://b.example/x)\n   s2"
    assert web.format_for_prompt(results) == f"{header}\n{first}\n{second}"
    assert web.format_for_prompt(results, len(first)) == f"{header}\n{first}"
    assert web.format_for_prompt(results, 5) == header
    assert web.format_for_prompt([]) == ""


class RecordingConfig(SiteConfig):
    """Remembers which settings were read."""

    def __init__(self):
        self.read: set[str] = set()
        super().__init__(environ={})

    def value(self, key):
        self.read.add(key)
        return super().value(key)


def test_assemble_reads_exactly_the_declared_settings():
    """A snapshot of `ASSEMBLE_SETTINGS` is enough to repeat an assembly."""
    settings = RecordingConfig()
    web = [{**each, "content": "text"} for each in five_results()]
    assemble(
        topic="t", results=web, searched=5, references=[], internal_links=[],
        site_config=settings, now=NOW, pages_read=True,
    )  # fmt: skip
    assert settings.read == ASSEMBLE_SETTINGS
    assert set(REGISTRY) >= ASSEMBLE_SETTINGS


def test_assemble_accounts_for_every_result():
    """Each result is a source or dropped with its reason, and the counts add up."""
    web = [{**each, "content": "text"} for each in five_results()]
    web[1]["content"] = ""
    web[2]["url"] = "javascript:alert(1)"
    web[3]["url"] = " "
    report = assemble(
        topic="t", results=web, searched=6, references=[], internal_links=[],
        site_config=config(), now=NOW, pages_read=True, max_sources=1,
    )  # fmt: skip
    assert [source.domain for source in report.sources] == ["a.example"]
    assert [(d.position, d.reason.value) for d in report.dropped] == [
        (1, "unfetchable"), (2, "unsafe_url"), (3, "no_url"), (4, "over_limit"),
    ]  # fmt: skip
    assert report.counts == {
        "searched": 6, "results": 5, "readable": 2, "kept": 1, "references": 0,
        "internal_links": 0, "no_url": 1, "unsafe_url": 1, "unfetchable": 1, "thin_snippet": 0,
        "duplicate": 0, "over_limit": 1,
    }  # fmt: skip
    assert report.sources[0].search_rank_score == 1.0


async def test_service_and_assembly_give_the_same_corpus():
    """The library call and the assembly of its own results are byte-equal."""
    web = [{**each, "content": "text"} for each in five_results()]
    report = await ResearchService(site_config=config(), web=FakeWeb(web)).research("lithium")
    again = assemble(
        topic="lithium", results=web, searched=5, references=[], internal_links=[],
        site_config=config(), now=NOW, pages_read=True,
    )  # fmt: skip
    assert report.corpus == again.corpus != ""
    assert set(report.timings) == {"internal_links", "web", "total"}


async def test_a_raising_web_tier_costs_its_section_only():
    """A web tier that raises is one finding, references still render."""
    service = ResearchService(site_config=config(), web=FakeWeb([], error=RuntimeError("no")))
    with collect_findings() as findings:
        corpus = await service.build_context("Redis caching")
    assert [f.kind for f in findings] == ["web_search_failed"]
    assert "VERIFIED REFERENCE LINKS" in corpus


class Hanging:
    async def search(self, query, num_results=5):
        await asyncio.Event().wait()

    async def fetch(self, query, *args):
        await asyncio.Event().wait()


async def test_look_ups_end_at_the_deadline():
    """A database and a web tier that hang cost their sections, not the corpus."""
    service = ResearchService(
        Hanging(), site_config=config(research_context_timeout_seconds=1), web=Hanging()
    )
    with collect_findings() as findings:
        corpus = await asyncio.wait_for(service.build_context("Redis caching"), 30)
    assert {f.kind for f in findings} == {"web_search_failed", "internal_link_search_failed"}
    assert "VERIFIED REFERENCE LINKS" in corpus


async def test_look_ups_run_at_the_same_time():
    """The database is asked while the web tier is still running."""
    asked = asyncio.Event()

    class Pool(FakePool):
        async def fetch(self, query, *args):
            asked.set()
            return []

    class Web(FakeWeb):
        async def search(self, query, num_results=5):
            await asked.wait()
            return []

    service = ResearchService(Pool([]), site_config=config(), web=Web([]))
    await asyncio.wait_for(service.build_context("quantum entanglement"), 30)


# the command line


@pytest.fixture
def fake_web(monkeypatch):
    web = FakeWeb([{**each, "content": "text"} for each in five_results()])
    monkeypatch.setattr("citeflow.research.WebResearcher", lambda **_: web)
    return web


def test_context_prints_the_corpus_and_notes_apart(fake_web, capsys):
    """The corpus alone is on standard output, notes are on standard error."""
    assert cli.main(["context", "quantum entanglement"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("RECENT WEB SOURCES (cite if relevant):\n- [T](https://a.example/x)")
    assert "5 web sources" in err


def test_context_json_is_the_report(fake_web, capsys):
    """With --json the report is one JSON object, sources capped on request."""
    assert cli.main(["context", "quantum entanglement", "--json", "--max-sources", "2"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["sources"]) == 2
    assert {drop["reason"] for drop in report["dropped"]} == {"over_limit"}
    assert report["counts"]["searched"] == 5


def test_context_snippets_only_reads_no_page(fake_web, capsys):
    """With --snippets-only pages are not read."""
    assert cli.main(["context", "quantum entanglement", "--snippets-only"]) == 0
    assert fake_web.calls == ["search_simple"]


def test_context_without_a_result_exits_with_one(fake_web, capsys):
    """Nothing to cite is exit status 1 and an empty standard output."""
    fake_web.results = []
    assert cli.main(["context", "quantum entanglement"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "nothing to cite" in err


def test_settings_lists_every_setting(capsys, monkeypatch):
    """Every setting is listed with its type, default, value and source."""
    monkeypatch.setenv("CITEFLOW_RESEARCH_MIN_SNIPPET_WORDS", "7")
    assert cli.main(["settings", "--json"]) == 0
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(REGISTRY)
    row = rows["research_min_snippet_words"]
    assert (row["type"], row["default"], row["value"], row["source"]) == (
        "int", 10, 7, "environment",
    )  # fmt: skip
    assert cli.main(["settings", "min_snippet_words"]) == 0
    assert capsys.readouterr().out.startswith("research_min_snippet_words  (int, default 10)\n")


@pytest.mark.parametrize("args", [[], ["context"], ["settings"]])
def test_help_ends_with_an_example(args, capsys):
    """The help of every command ends with an example."""
    with pytest.raises(SystemExit):
        cli.main([*args, "--help"])
    out = capsys.readouterr().out
    assert "example:\n  " in out
    assert "citeflow" in out.rstrip().splitlines()[-1]


def test_python_m_citeflow_is_the_command():
    """`python -m citeflow settings` runs the command line."""
    done = subprocess.run(
        [sys.executable, "-m", "citeflow", "settings", "rank_weight"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("research_search_rank_weight")


# the public API


def test_the_public_api_is_exact():
    """`__all__` is the list of names that resolve, each from the module that owns it."""
    assert sorted(citeflow._HOME) == sorted(citeflow.__all__)
    assert len(set(citeflow.__all__)) == len(citeflow.__all__)
    for name, module in citeflow._HOME.items():
        assert getattr(citeflow, name) is getattr(importlib.import_module(module), name)
        assert name in importlib.import_module(module).__all__
    assert set(citeflow.__all__) <= set(dir(citeflow))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = citeflow.nothing


def test_importing_the_package_loads_nothing_heavy():
    """A worker process pays only for what it uses."""
    code = "import sys, citeflow; print([m for m in ('httpx', 'ddgs', 'lxml') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
