"""The components of a source's score, beyond the acceptance cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.quality import DropReason, ResearchQualityService, canonical_url
from citeflow.quality.credibility import domain_credibility
from citeflow.quality.recency import leading_age_days
from citeflow.quality.similarity import word_similarity
from citeflow.quality.snippet import is_thin, reads_like_ad
from citeflow.quality.words import Terms, comparison_words, count_words
from tests.support.research import F1, F2, F3, NOW, config, result


@pytest.mark.parametrize(
    "variant",
    [
        "http://a.example/x",
        "https://www.a.example/x/",
        "https://A.example:443/x#part",
        "https://a.example/x?utm_source=news&gclid=1",
        "https://amp.a.example/x",
        "https://a.example/x/amp",
        "https://user@a.example/%78",
    ],
)
def test_spellings_of_one_page_are_one_key(variant):
    """Scheme, www, port, fragment, slash, tracking and AMP do not make another page."""
    assert canonical_url(variant) == canonical_url("https://a.example/x")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("https://a.example/x?id=1", "https://a.example/x?id=2"),
        ("https://a.example/x", "https://b.example/x"),
        ("https://a.example:8443/x", "https://a.example/x"),
        ("https://a.example/X", "https://a.example/x"),
        ("https://a.example/#!/x", "https://a.example/#!/y"),
        ("https://a.example/a%2Fb", "https://a.example/a/b"),
    ],
)
def test_different_pages_have_different_keys(left, right):
    """What may select another page stays in the key."""
    assert canonical_url(left) != canonical_url(right)


@given(st.text())
def test_any_text_has_a_key(text):
    """No input makes the canonical form fail."""
    assert isinstance(canonical_url(text), str)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://nhs.gov.uk/x", 0.95),
        ("https://anu.edu.au/x", 0.95),
        ("https://people.mit.edu/x", 0.65),
        ("https://cs.mit.edu/~someone/x", 0.65),
        ("https://cs.mit.edu/%7Esomeone", 0.65),
        ("https://edu.evil.example/x", 0.65),
        ("https://mitedu/x", 0.65),
        ("no host", 0.5),
    ],
)
def test_credibility_decisions(url, expected):
    """National zones count, personal pages and look-alikes do not."""
    assert domain_credibility(url, ("edu", "gov", "ac.uk"), ("python.org",)) == expected


@pytest.mark.parametrize(
    ("lead", "days"),
    [
        ("an hour ago - x", 0),
        ("yesterday · x", 1),
        ("3 weeks ago — x", 21),
        ("15 March 2026 - x", 92),
        ("Mar. 15, 2026 ... x", 92),
        ("Sept 2025 • x", 287),
        ("2026-03-15 - x", 92),
        ("15.03.2026 - x", 92),
        ("vor 3 Tagen · x", 3),
        ("15. März 2026 · x", 92),
        ("il y a 2 semaines · x", 14),
        ("hace un mes - x", 30),
        ("15 de marzo de 2026 - x", 92),
        ("há 5 dias - x", 5),
        ("3 giorni fa - x", 3),
        ("2 dagen geleden - x", 2),
        ("3天前 - x", 3),
        ("5日前 · x", 5),
        ("3일 전 - x", 3),
        ("2026年3月15日 - x", 92),
        ("2026-03-15-release notes", None),
        ("Foo 3, 2026 - x", None),
        ("2026 - x", None),
        ("May 2026 x", None),
        ("", None),
    ],
)
def test_dates_in_front_of_a_snippet(lead, days):
    """The grammar covers relative and absolute dates in several languages."""
    assert leading_age_days(lead, NOW) == days


@given(st.text(max_size=80))
def test_no_snippet_breaks_the_date_grammar(text):
    """Any text has an age of zero or more days, or none."""
    age = leading_age_days(text, NOW)
    assert age is None or age >= 0


@pytest.mark.parametrize(
    "text",
    ["Sponsored content. More", "Ad · Sponsored · shoes", "Buy now and save", "Error 404",
     "Page not found", "Limited-time offer on shoes", "Advertisement"],
)  # fmt: skip
def test_advertising_is_recognised(text):
    """Labels and phrases of advertisements and error pages."""
    assert reads_like_ad(text)


@pytest.mark.parametrize(
    "text",
    ["She was promoted to editor", "The cause was not found in the data", "A sponsored athlete",
     "a history of advertisement in print", "a limited time later"],
)  # fmt: skip
def test_prose_is_not_advertising(text):
    """Words of advertising in ordinary prose cost nothing."""
    assert not reads_like_ad(text)


def test_text_without_spaces_has_words():
    """A Chinese snippet of ordinary length passes the minimums, and near-copies are found."""
    text = "锂电池在高温下反复充电至百分之八十以上时容量会逐渐下降,研究人员对此进行了长期实验。"
    assert count_words(text) > 10
    assert not is_thin(text, min_length=50, min_words=10)
    other = text.replace("长期", "短期")
    assert word_similarity(comparison_words(text), comparison_words(other)) > 0.9


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("GPU prices and AI in C++", ("gpu", "prices", "ai", "c++")),
        ("HOW TO BAKE BREAD", ("bake", "bread")),
        ("the cat sat", ()),
        ("rate rate Rate", ("rate",)),
    ],
)
def test_terms_of_a_query(query, words):
    """Terms are long words and short names in capitals, each once."""
    assert Terms(query).words == words


def test_terms_match_whole_words():
    """A short name matches its word whatever the case, never a part of one."""
    terms = Terms("Is C++ good for AI")
    assert terms.matched("c++ and good ai") == 3
    assert terms.matched("c and goods said") == 0


def judge(results, **settings):
    return ResearchQualityService(site_config=config(**settings)).judge(results, now=NOW)


def test_one_page_with_two_snippets_is_one_source():
    """The same page under another spelling is a duplicate, whatever its snippet."""
    other = {**result("a.example", F2), "url": "http://www.a.example/x/?utm_source=n"}
    judged = judge([result("a.example", F1), other, result("b.example", F3)])
    assert [source.domain for source in judged.sources] == ["a.example", "b.example"]
    assert [(d.position, d.reason) for d in judged.dropped] == [(1, DropReason.DUPLICATE)]
    assert judged.dropped[0].detail == "same page as https://a.example/x"


def test_every_result_is_kept_or_dropped_with_its_reason():
    """Missing addresses, thin and missing snippets and copies are told apart."""
    judged = judge(
        [
            result("a.example", F1),
            {"title": "n", "snippet": F2},
            result("c.example", "thin"),
            {"title": "m", "url": "https://d.example/x", "snippet": None},
            result("e.example", F1),
        ]
    )
    assert [(d.position, d.reason.value) for d in judged.dropped] == [
        (1, "no_url"),
        (2, "thin_snippet"),
        (3, "thin_snippet"),
        (4, "duplicate"),
    ]


def test_no_results_are_no_sources():
    """Empty input is empty output."""
    assert judge([]).sources == ()


def test_ties_are_in_search_order():
    """Sources of equal score are ordered by their search position, not by the input."""
    first = {**result("a.example", F1), "search_position": 1}
    second = {**result("b.example", F2), "search_position": 0}
    judged = judge([first, second], research_search_rank_weight=0)
    assert [source.domain for source in judged.sources] == ["b.example", "a.example"]


WORDS = st.lists(st.sampled_from(["aa", "bb", "cc", "dd"]), max_size=12)


@given(WORDS, WORDS)
def test_similarity_is_symmetric_and_bounded(left, right):
    """The order of a pair does not matter, equal lists are 1.0."""
    similarity = word_similarity(left, right)
    assert similarity == word_similarity(right, left)
    assert 0.0 <= similarity <= 1.0
    assert word_similarity(left, left) == (1.0 if left else 0.0)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "url": st.sampled_from([f"https://{h}/x" for h in ("a.example", "b.edu", "c.gov")]),
                "snippet": st.text(max_size=60),
                "search_position": st.integers(-1, 9),
            }
        ),
        max_size=8,
    )
)
def test_no_result_gets_lost(results):
    """Every result is either a source or dropped, and scores are in 0..1, best first."""
    judged = judge(results, research_min_snippet_length=0, research_min_snippet_words=0)
    assert len(judged.sources) + len(judged.dropped) == len(results)
    scores = [source.overall_score for source in judged.sources]
    assert scores == sorted(scores, reverse=True)
    for source in judged.sources:
        assert 0.0 <= source.search_rank_score <= 1.0
        assert 0.0 <= source.overall_score <= 1.0
