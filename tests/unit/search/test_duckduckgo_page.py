"""Reading DuckDuckGo's page with the ddgs engine's own expressions."""

from __future__ import annotations

import pytest
from ddgs.engines.duckduckgo import Duckduckgo
from hypothesis import given, settings
from hypothesis import strategies as st

from citeflow.search import SearchStatus
from citeflow.search.duckduckgo_page import read_page
from tests.support.engines import (
    ANOMALY_PAGE,
    NOTHING_FOUND_PAGE,
    ad,
    result,
    result_page,
    wrapped,
)

ENGINE = Duckduckgo()

words = st.text(alphabet="abc<>&\"' é日", min_size=1, max_size=20).filter(str.strip)
urls = st.from_regex(r"https://[a-z]{1,9}\.example/[!-~]{0,30}", fullmatch=True)


def one_line(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(words, urls, st.none() | words, st.booleans()), min_size=1, max_size=30))
def test_order_of_hits_is_the_order_of_the_page(
    results: list[tuple[str, str, str | None, bool]],
) -> None:
    """Every result comes out once, in its place, with its own title, link and snippet."""
    blocks = [ad("Buy")]
    for title, url, snippet, wrap in results:
        blocks.append(result(title, wrapped(url) if wrap else url, snippet))
    answer = read_page(ENGINE, result_page(blocks).encode(), k=100)
    assert answer.status is SearchStatus.OK
    read = [(one_line(hit.title), hit.url, one_line(hit.snippet)) for hit in answer.hits]
    assert read == [
        (one_line(title), url, one_line(snippet or "")) for title, url, snippet, _ in results
    ]


def test_result_without_snippet_keeps_the_others_paired() -> None:
    """Three results, the first without a snippet: snippets stay with their own results."""
    blocks = [
        result("One", "https://1.example/", None),
        result("Two", "https://2.example/", "second"),
        result("Three", "https://3.example/", "third"),
    ]
    answer = read_page(ENGINE, result_page(blocks).encode(), k=5)
    assert [(hit.url, hit.snippet) for hit in answer.hits] == [
        ("https://1.example/", ""),
        ("https://2.example/", "second"),
        ("https://3.example/", "third"),
    ]


def test_links_that_are_no_web_pages_are_dropped() -> None:
    """Advertisements and script links leave no hit, whatever they are wrapped in."""
    blocks = [
        ad("Ad"),
        result("Wrapped ad", wrapped("https://duckduckgo.com/y.js?ad_domain=x")),
        result("Script", wrapped("javascript:alert(1)")),
        result("Absolute", "https:" + wrapped("javascript:alert(1)")),
        result("Twice", wrapped("https:" + wrapped("https://a.example/"))),
        result("File", "file:///etc/passwd"),
        result("Foreign", "https://evil.example/?uddg=javascript%3Aalert(1)"),
    ]
    answer = read_page(ENGINE, result_page(blocks).encode(), k=5)
    assert [hit.title for hit in answer.hits] == ["Foreign"]
    assert answer.hits[0].url == "https://evil.example/?uddg=javascript%3Aalert(1)"


@pytest.mark.parametrize(
    ("page", "status"),
    [
        (NOTHING_FOUND_PAGE, SearchStatus.EMPTY),
        (result_page([ad("Only"), ad("Ads")]), SearchStatus.EMPTY),
        (ANOMALY_PAGE, SearchStatus.CHALLENGED),
        (result_page([]), SearchStatus.UNAVAILABLE),
        (result_page([result("Script", "javascript:x")]), SearchStatus.UNAVAILABLE),
        ("<html><body>Service notice: anomaly-modal</body></html>", SearchStatus.UNAVAILABLE),
        ("", SearchStatus.UNAVAILABLE),
        ("   ", SearchStatus.UNAVAILABLE),
        ("<!-- -->", SearchStatus.UNAVAILABLE),
        ('<?xml version="1.0" encoding="utf-8"?><p>x</p>', SearchStatus.UNAVAILABLE),
        ("<div>" * 20_000, SearchStatus.UNAVAILABLE),
    ],
)
def test_page_without_hits_is_only_empty_when_it_says_so(page: str, status: SearchStatus) -> None:
    """An honest zero carries DuckDuckGo's own sign; everything else is a failure."""
    answer = read_page(ENGINE, page.encode(), k=5)
    assert (answer.status, answer.hits) == (status, [])


@settings(deadline=None)
@given(
    st.binary(max_size=500)
    | st.text(alphabet="<>/=\"' divclashref&;#x0", max_size=300).map(str.encode)
)
def test_no_bytes_raise(page: bytes) -> None:
    """Whatever the engine sends is an answer, and never an honest zero by accident."""
    assert read_page(ENGINE, page, k=5).status is not SearchStatus.EMPTY
