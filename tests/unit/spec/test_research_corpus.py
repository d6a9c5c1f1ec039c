"""The acceptance cases of the research corpus, by number."""

from __future__ import annotations

import json
import logging

import pytest

from citeflow import research
from citeflow.context import get_known_references, match_references
from citeflow.context.references import _DEFAULT_KNOWN_REFERENCES, KNOWN_REFERENCES
from citeflow.findings import Severity, collect_findings
from citeflow.quality import ResearchQualityService
from citeflow.research import ResearchService, research_topic
from citeflow.search.outcome import SearchHit
from citeflow.web import WebResearcher
from tests.support.research import (
    D1,
    F1,
    F2,
    F3,
    F4,
    F5,
    NOW,
    FakeFetcher,
    FakePool,
    FakeSearch,
    FakeWeb,
    config,
    five,
    result,
)


def judge(results, query=None, **settings):
    service = ResearchQualityService(site_config=config(**settings))
    return service.filter_and_score(results, query, now=NOW)


def hosts(sources):
    return [source.domain for source in sources]


def scores(sources):
    return [round(source.overall_score, 6) for source in sources]


def urls(references):
    return [reference.url for reference in references]


def kinds(findings):
    return [finding.kind for finding in findings]


async def build(topic, web_results=(), *, pool=None, **settings):
    web = FakeWeb(list(web_results))
    service = ResearchService(pool, site_config=config(**settings), web=web)
    with collect_findings() as findings:
        corpus = await service.build_context(topic)
    return corpus, findings, web


# rendering and look-ups


async def test_case_01_golden_render():
    """All four sections render exactly as specified, content keeping its own newlines."""
    pool = FakePool([{"title": "Redis at home", "slug": "redis-at-home"}])
    web = [result("a.example", F1, title="T1", content="  line one\nline two")]
    corpus, findings, _ = await build("Redis caching patterns", web, pool=pool)
    assert corpus == (
        "VERIFIED REFERENCE LINKS (use these as citations):\n"
        "- [Redis documentation](https://redis.io/docs/latest/)\n"
        "- [Redis commands](https://redis.io/docs/latest/commands/)\n"
        "\n"
        "EXISTING POSTS ON OUR SITE (link to these where relevant):\n"
        "- [Redis at home](/posts/redis-at-home)\n"
        "\n"
        "RECENT WEB SOURCES (cite if relevant):\n"
        f"- [T1](https://a.example/x): {F1}\n"
        "  Source text: line one\n"
        "line two\n"
        "\n"
        "CITATION GUIDANCE:\n"
        "- Cite with inline Markdown links, and only pages that are listed above.\n"
        "- Link a reference where its subject is first explained.\n"
        "- Attribute every figure, date and claim of fact to the source it comes from.\n"
        "- Link our own posts where they deepen the point being made."
    )
    assert findings == []


async def test_case_02_nothing_renders_as_the_empty_string():
    """No references, no pool and an empty search give "" and no finding."""
    corpus, findings, _ = await build("quantum entanglement overview")
    assert (corpus, findings) == ("", [])


def test_case_03_all_keywords_give_exactly_eight_references():
    """References are capped at eight, in map order, without a repeated address."""
    assert len(KNOWN_REFERENCES) == 19
    entries = [entry["url"] for values in KNOWN_REFERENCES.values() for entry in values]
    assert (len(entries), len(set(entries))) == (41, 38)
    found = urls(match_references(" ".join(KNOWN_REFERENCES), KNOWN_REFERENCES))
    assert len(found) == len(set(found)) == 8
    assert found[0] == "https://fastapi.tiangolo.com"
    assert found[7] == "https://docs.docker.com/reference/dockerfile/"
    assert research.KNOWN_REFERENCES is research._DEFAULT_KNOWN_REFERENCES


@pytest.mark.parametrize("topic", ["Object storage costs in 2026", "Fragrance dragon average"])
def test_case_04_keywords_inside_other_words_do_not_match(topic):
    """A keyword matches whole words only."""
    assert match_references(topic, KNOWN_REFERENCES) == []


@pytest.mark.parametrize(("topic", "keyword"), [("RAG pipelines", "rag"), ("LLMs compared", "llm")])
def test_case_04_whole_words_and_plurals_match(topic, keyword):
    """A whole word or its plural brings all entries of the keyword."""
    expected = [entry["url"] for entry in KNOWN_REFERENCES[keyword]]
    assert urls(match_references(topic, KNOWN_REFERENCES)) == expected
    assert len(expected) == 2


def test_case_05_known_references_json_replaces_the_map():
    """A valid object replaces the map, its keys lower-cased and unusable entries skipped."""
    raw = {"COOKING": [{"title": "C", "url": "https://c.example"}, {"title": "x"}], "bad": "s"}
    found = get_known_references(site_config=config(known_references_json=json.dumps(raw)))
    assert found == {"cooking": [{"title": "C", "url": "https://c.example"}]}


@pytest.mark.parametrize(
    "raw", ["", "  ", "{not json", "[1]", '{"x":[{"title":"n"}]}', "[" * 10_000]
)
def test_case_05_unusable_json_falls_back_to_the_default_object(raw, caplog):
    """Malformed references give the default map itself, with one warning unless blank."""
    found = get_known_references(site_config=config(known_references_json=raw))
    assert found is _DEFAULT_KNOWN_REFERENCES
    assert len(caplog.records) == (1 if raw.strip() else 0)


def test_case_05_empty_keywords_and_other_schemes_are_rejected():
    """An empty keyword and addresses other than http and https are skipped."""
    raw = {
        "": [{"title": "every", "url": "https://every.example"}],
        "js": [
            {"title": "bad", "url": "javascript:alert(1)"},
            {"title": "J", "url": "http://j.example"},
        ],
    }
    found = get_known_references(site_config=config(known_references_json=json.dumps(raw)))
    assert found == {"js": [{"title": "J", "url": "http://j.example"}]}


async def test_case_06_no_qualifying_word_means_no_query():
    """A topic without a word of four characters never reaches the database."""
    pool = FakePool([{"title": "AI", "slug": "ai"}])
    await build("AI ML", pool=pool)
    assert pool.calls == []


async def test_case_06_a_failing_pool_costs_its_section_only():
    """A failing query is one info finding and the other sections still render."""
    pool = FakePool([], error=OSError("no database"))
    web = [result("a.example", F1, content="text")]
    corpus, findings, _ = await build("Redis caching patterns", web, pool=pool)
    assert [(f.kind, f.severity) for f in findings] == [
        ("internal_link_search_failed", Severity.INFO)
    ]
    assert "VERIFIED REFERENCE LINKS" in corpus
    assert "RECENT WEB SOURCES" in corpus
    assert "EXISTING POSTS" not in corpus


async def test_case_07_internal_links_share_whole_words():
    """Posts are matched by whole words, and equal calls give equal answers."""
    pool = FakePool(
        [
            {"title": "Generate reports", "slug": "generate-reports"},
            {"title": "Interest rate basics", "slug": "interest-rate-basics"},
        ]
    )
    first, _, _ = await build("rate", pool=pool)
    second, _, _ = await build("rate", pool=pool)
    assert "(/posts/interest-rate-basics)" in first
    assert "generate" not in first
    assert first == second
    assert any("rate" in pattern for pattern in pool.calls[0][1])


# the fetch gate and its findings


async def test_case_08_unreadable_results_are_dropped_with_one_warning(caplog):
    """A blank page is not rendered, and one warning names its address."""
    web = [result("a.example", F1, content="text"), result("b.example", F2, content="  ")]
    corpus, _, _ = await build("quantum entanglement", web)
    assert "https://a.example/x" in corpus
    assert "https://b.example/x" not in corpus
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "https://b.example/x" in warnings[0]


async def test_case_08_with_the_gate_off_unreadable_results_stay():
    """Without the gate both results render, the unreadable one without an excerpt."""
    web = [result("a.example", F1, content="text"), result("b.example", F2, content="  ")]
    corpus, _, _ = await build(
        "quantum entanglement", web, research_require_fetched_source_for_citation=False
    )
    assert f"- [T](https://b.example/x): {F2[:100]}\n\nCITATION" in corpus
    assert corpus.count("Source text:") == 1


async def test_case_09_all_unfetchable_is_one_finding():
    """When no page could be read there is no web section and exactly one finding."""
    corpus, findings, _ = await build("quantum entanglement", five())
    assert corpus == ""
    assert kinds(findings) == ["research_web_sources_all_unfetchable"]


async def test_case_10_without_extraction_snippets_are_enough():
    """With extraction off only search_simple is called and the gate does not apply."""
    corpus, findings, web = await build(
        "quantum entanglement", [result("a.example", F1)], research_extract_web_content=False
    )
    assert web.calls == ["search_simple"]
    assert f"- [T](https://a.example/x): {F1}" in corpus
    assert "Source text:" not in corpus
    assert findings == []


def test_case_11_thin_snippets_are_dropped():
    """A snippet under either minimum is dropped, one that equals both is kept."""
    nine_words = "one two three four five six seven eight nine--------"
    ten_words = "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjjj"
    assert (len(nine_words), len(ten_words)) == (52, 50)
    assert hosts(judge([result("a.example", nine_words), result("b.example", ten_words)])) == [
        "b.example"
    ]


async def test_case_12_all_filtered_is_one_warning_finding():
    """When every readable result is too thin there is one finding of severity warn."""
    web = [result("a.example", "Visit the post for more.", content="text")]
    corpus, findings, _ = await build("quantum entanglement", web)
    assert corpus == ""
    assert [(f.kind, f.severity) for f in findings] == [
        ("research_web_sources_all_filtered", Severity.WARN)
    ]


# scoring


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        (0.95, "mit.edu cdc.gov ox.ac.uk"),
        (0.85, "docs.python.org en.wikipedia.org learn.microsoft.com arxiv.org"),
        (0.65, "github.com medium.com dev.to techcrunch.com site.xyz fatsil.org notpython.org"),
    ],
)
def test_case_13_credibility_tiers(expected, names):
    """Hosts score by their tier, look-alikes as any other host."""
    for name in names.split():
        assert judge([result(name, F1)])[0].domain_credibility == expected, name


def test_case_13_domain_is_the_bare_host():
    """The domain is lower case, without `www.`, port and path."""
    source = {**result("x", F1), "url": "https://www.Example.com:8443/x?y"}
    assert hosts(judge([source])) == ["example.com"]


def test_case_13_a_tier_setting_replaces_the_list():
    """A non-empty tier-1 setting replaces the defaults and accepts full hosts."""
    found = judge(
        [result("blogs.nature.com", F1), result("mit.edu", F2)], research_tier1_domains="nature.com"
    )
    assert {source.domain: source.domain_credibility for source in found} == {
        "blogs.nature.com": 0.95,
        "mit.edu": 0.65,
    }


def test_case_14_neutral_sources_keep_the_search_order():
    """Five equal sources score by their search rank alone."""
    found = judge(five())
    assert hosts(found) == [f"{letter}.example" for letter in "abcde"]
    assert [source.search_rank_score for source in found] == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert scores(found) == [0.75, 0.678571, 0.607143, 0.535714, 0.464286]


def test_case_15_a_tier1_host_passes_its_neighbour():
    """A tier-1 host right behind a neutral one comes first."""
    found = judge(five(b="cs.example.edu"))
    assert hosts(found)[:2] == ["cs.example.edu", "a.example"]
    assert scores(found)[:2] == [0.764286, 0.75]


def test_case_16_a_tier2_host_alone_does_not():
    """A tier-2 host right behind a neutral one stays behind it."""
    found = judge(five(b="docs.python.org"))
    assert hosts(found)[:2] == ["a.example", "docs.python.org"]
    assert scores(found)[:2] == [0.75, 0.735714]


def test_case_17_the_rank_weight_limits_how_far_a_host_rises():
    """A tier-1 host in fourth place rises by one, without the rank weight to the top."""
    found = judge(five(d="cs.example.edu"))
    assert hosts(found) == ["a.example", "b.example", "cs.example.edu", "c.example", "e.example"]
    assert scores(found)[2:4] == [0.621429, 0.607143]
    unranked = judge(five(d="cs.example.edu"), research_search_rank_weight=0)
    assert (unranked[0].domain, scores(unranked)[0]) == ("cs.example.edu", 0.77)


NO_WEIGHTS = dict.fromkeys(
    (
        "research_credibility_weight",
        "research_snippet_quality_weight",
        "research_recency_weight",
        "research_uniqueness_weight",
        "research_search_rank_weight",
    ),
    0,
)


def test_case_18_without_weights_the_input_order_stays():
    """With all weights zero every score is 0.0 and the input order is kept."""
    found = judge(five(b="cs.example.edu"), **NO_WEIGHTS)
    assert hosts(found) == ["a.example", "cs.example.edu", "c.example", "d.example", "e.example"]
    assert {source.overall_score for source in found} == {0.0}


def test_case_18_without_weights_the_first_listed_copy_stays():
    """With all weights zero a duplicate cluster keeps its first-listed copy."""
    copies = [result("shop.example", D1), result("a.example", F1), result("press.example.edu", D1)]
    assert hosts(judge(copies, **NO_WEIGHTS)) == ["shop.example", "a.example"]


async def test_case_19_original_positions_survive_the_fetch_gate():
    """A tier-1 host in third place passes its neighbour though the first page was unreadable."""
    web = five(c="cs.example.edu")
    for index, each in enumerate(web):
        each["content"] = "text" if index else ""
    service = ResearchService(site_config=config(), web=FakeWeb(web))
    report = await service.research("quantum entanglement")
    assert hosts(report.sources)[:2] == ["cs.example.edu", "b.example"]
    assert report.sources[0].search_position == 2
    assert report.sources[1].search_rank_score == 0.75


def test_case_20_the_best_copy_takes_the_best_position():
    """The most credible copy survives and takes the first position of its cluster."""
    found = judge(
        [result("shop.example", D1), result("a.example", F1), result("press.example.edu", D1)]
    )
    assert hosts(found) == ["press.example.edu", "a.example"]
    assert scores(found) == [0.835714, 0.607143]
    assert (found[0].search_position, found[0].search_rank_score) == (0, 1.0)


def test_case_21_uniqueness_is_one_minus_the_closest_similarity():
    """Sources that share half their words score 0.5, an unrelated and a lone one 1.0."""
    shared = "alpha1 alpha2 alpha3 alpha4 alpha5 alpha6 "
    a = result("a.example", shared + "beta1 beta2 beta3 beta4 beta5 beta6")
    b = result("b.example", shared + "gamma1 gamma2 gamma3 gamma4 gamma5 gamma6")
    c = result("c.example", F3)
    found = judge([a, b, c], research_search_rank_weight=0)
    assert {source.domain: source.uniqueness_score for source in found} == {
        "a.example": 0.5,
        "b.example": 0.5,
        "c.example": 1.0,
    }
    assert (found[0].domain, scores(found)) == ("c.example", [0.65, 0.6, 0.6])
    assert judge([a])[0].uniqueness_score == 1.0


def _chain(edu):
    words = [f"common{i}" for i in range(10)]
    other = [f"other{i}" for i in range(6)]
    a, b, c = words, other[:3] + words[3:], other[:6] + words[6:]
    names = [f"{letter}.example" + (".edu" if letter == edu else "") for letter in "abc"]
    return [result(name, " ".join(text)) for name, text in zip(names, (a, b, c), strict=True)]


def test_case_22_greedy_clusters_depend_on_the_best_source():
    """Of a chain A-B-C only B survives when B is best, A and C when A is."""
    assert hosts(judge(_chain("b"))) == ["b.example.edu"]
    assert hosts(judge(_chain("a"))) == ["a.example.edu", "c.example"]


@pytest.mark.parametrize(
    ("snippet", "query", "expected"),
    [
        (" ".join(["word"] * 20), None, 0.5),
        (" ".join(["word"] * 21), None, 0.7),
        (" ".join(["word"] * 30), None, 0.7),
        (" ".join(["word"] * 31), None, 0.8),
        (F1, "lithium capacity battery", 0.633333),
        (F1 + " Sponsored.", None, 0.2),
        (F1.replace("cells", "compiler"), "compilers", 0.5),
    ],
)
def test_case_23_snippet_quality(snippet, query, expected):
    """Length, topic words and advertising phrases make the snippet's quality."""
    assert round(judge([result("a.example", snippet)], query)[0].snippet_quality, 6) == expected


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        ("7 days ago · ", 0.9),
        ("8 days ago - ", 0.8),
        ("1 year ago - ", 0.8),
        ("13 months ago - ", 0.6),
        ("", 0.7),
        ("3 days of hiking - ", 0.7),
        ("May 2026 bring ", 0.7),
        ("Feb 30, 2026 - ", 0.7),
        ("Jul 1, 2027 - ", 0.9),
    ],
)
def test_case_24_recency(lead, expected):
    """Recency follows from the date in front of the snippet."""
    assert judge([result("a.example", lead + F1)])[0].recency_score == expected


def test_case_25_settings_are_read_at_each_call():
    """A setting changed after construction affects the next call on the same instance."""
    settings = config()
    service = ResearchQualityService(site_config=settings)
    assert len(service.filter_and_score([result("a.example", F1)])) == 1
    settings.reload({"research_min_snippet_words": 50})
    assert service.filter_and_score([result("a.example", F1)]) == []


def test_case_25_the_log_line_counts_what_was_dropped(caplog):
    """One INFO line tells how many results were kept, thin and duplicate."""
    caplog.set_level(logging.INFO)
    judge(
        [
            result("a.example", F1),
            result("b.example", F2),
            result("c.example", F1),
            result("d.example", "thin"),
        ]
    )
    lines = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    assert lines == [
        "ResearchQualityService: Processed 4 results, kept 2 (1 thin snippet, 1 duplicate)"
    ]


# the web tier


async def test_case_26_a_failed_search_gives_no_results():
    """A search without hits is an empty list, asked once, and reads no page."""
    search, fetcher = FakeSearch(), FakeFetcher({})
    web = WebResearcher(site_config=config(), search=search, fetcher=fetcher)
    assert await web.search("q") == []
    assert search.calls == [("q", 5)]
    assert fetcher.calls == []


async def test_case_29_a_failed_page_keeps_its_result_and_is_one_finding():
    """Both results return in order, and the host that failed is one finding."""
    search = FakeSearch(
        SearchHit("A", "https://a.example/x", F1), SearchHit("B", "https://b.example/x", F2)
    )
    fetcher = FakeFetcher({"https://b.example/x": "page text"})
    web = WebResearcher(site_config=config(), search=search, fetcher=fetcher)
    with collect_findings() as findings:
        found = await web.search("q")
    assert found == [
        {"title": "A", "url": "https://a.example/x", "snippet": F1, "content": "",
         "search_position": 0},
        {"title": "B", "url": "https://b.example/x", "snippet": F2, "content": "page text",
         "search_position": 1},
    ]  # fmt: skip
    assert [(f.kind, f.dedup_key) for f in findings] == [
        ("web_research_extract_failed", "web_research_extract_failed:a.example")
    ]


async def test_case_29_research_topic_returns_a_stub_on_failure(monkeypatch):
    """An exception inside becomes the stub string."""

    class Broken:
        def __init__(self, **_):
            raise RuntimeError("no")

    monkeypatch.setattr(research, "ResearchService", Broken)
    assert await research_topic("q", site_config=config()) == "[research stub for: q]"


async def test_case_29_research_topic_without_context_is_empty(monkeypatch):
    """An empty corpus stays the empty string."""
    monkeypatch.setattr(research, "WebResearcher", lambda **_: FakeWeb([]))
    assert await research_topic("quantum entanglement", site_config=config()) == ""


async def test_research_topic_renders_at_most_max_sources(monkeypatch):
    """The cap of research_topic is enforced, from its argument or from the setting."""
    web = [{**each, "content": "text"} for each in five()]
    monkeypatch.setattr(research, "WebResearcher", lambda **_: FakeWeb(web))
    default = await research_topic("quantum entanglement", site_config=config())
    three = await research_topic("quantum entanglement", 3, site_config=config())
    assert (default.count("Source text:"), three.count("Source text:")) == (2, 3)


def test_fixture_texts_share_no_order_of_words():
    """The fixtures are unrelated, as the expected scores assume."""
    for source in judge([result(f"{i}.example", t) for i, t in enumerate((F1, F2, F3, F4, F5))]):
        assert source.uniqueness_score == 1.0
