"""Reading the page of DuckDuckGo's lite version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citeflow.search import SearchStatus
from citeflow.search.ddg_lite_page import read_lite_page
from tests.support.engines import ANOMALY_PAGE, wrapped
from tests.support.search_web import LITE_NOTHING_FOUND, lite_page, lite_result

words = st.text(alphabet="abc<>&\"' é日", min_size=1, max_size=20).filter(str.strip)
urls = st.from_regex(r"https://[a-z]{1,9}\.example/[!-~]{0,30}", fullmatch=True)
rows = st.tuples(
    words, urls, st.none() | words, st.booleans(), st.sampled_from("'\""), st.booleans()
)


def one_line(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=200, deadline=None)
@given(st.lists(rows, min_size=1, max_size=30))
def test_order_of_hits_is_the_order_of_the_page(
    results: list[tuple[str, str, str | None, bool, str, bool]],
) -> None:
    """Every result comes out once, in its place, with its own title, link and snippet."""
    blocks = [lite_result("Buy", "https://shop.example/", "Now", sponsored=True)]
    for title, url, snippet, wrap, quote, class_first in results:
        href = wrapped(url) if wrap else url
        blocks.append(lite_result(title, href, snippet, quote=quote, class_first=class_first))
    answer = read_lite_page(lite_page(blocks).encode(), k=100)
    assert answer.status is SearchStatus.OK
    read = [(one_line(hit.title), hit.url, one_line(hit.snippet)) for hit in answer.hits]
    assert read == [(one_line(t), url, one_line(s or "")) for t, url, s, *_ in results]


def test_an_advertisement_takes_its_snippet_along() -> None:
    """What is sponsored, by its row or by its click counter, leaves nothing behind."""
    blocks = [
        lite_result("One", "https://1.example/", None),
        lite_result("Ad", "https://shop.example/", "Buy", sponsored=True),
        lite_result("Two", "https://2.example/", None),
        lite_result("Ad", "https://duckduckgo.com/y.js?ad_domain=x", "Buy"),
    ]
    answer = read_lite_page(lite_page(blocks).encode(), k=5)
    assert [(hit.title, hit.snippet) for hit in answer.hits] == [("One", ""), ("Two", "")]


@pytest.mark.parametrize(
    ("page", "status"),
    [
        (LITE_NOTHING_FOUND, SearchStatus.EMPTY),
        ("<table><tr><td>No more results.</td></tr></table>", SearchStatus.EMPTY),
        (lite_page([lite_result("Ad", "https://a.example/", sponsored=True)]), SearchStatus.EMPTY),
        (ANOMALY_PAGE, SearchStatus.CHALLENGED),
        (lite_page([]), SearchStatus.UNAVAILABLE),
        (lite_page([lite_result("Script", "javascript:x")]), SearchStatus.UNAVAILABLE),
        ("<input name='q' value='No results.'>", SearchStatus.UNAVAILABLE),
        ("<td>You asked for: No results.</td>", SearchStatus.UNAVAILABLE),
        ("", SearchStatus.UNAVAILABLE),
        ("<!-- -->", SearchStatus.UNAVAILABLE),
        ('<?xml version="1.0" encoding="utf-8"?><p>x</p>', SearchStatus.UNAVAILABLE),
        ("<table><tr><td>" * 20_000, SearchStatus.UNAVAILABLE),
    ],
)
def test_page_without_hits_is_only_empty_when_it_says_so(page: str, status: SearchStatus) -> None:
    """An honest zero carries the page's own sign; everything else is a failure."""
    answer = read_lite_page(page.encode(), k=5)
    assert (answer.status, answer.hits) == (status, [])


@settings(deadline=None)
@given(
    st.binary(max_size=500)
    | st.text(alphabet="<>/=\"' tdarclshefiknp&;#x0-", max_size=300).map(str.encode)
)
def test_no_bytes_raise(page: bytes) -> None:
    """Whatever the engine sends is an answer, and never an honest zero by accident."""
    assert read_lite_page(page, k=5).status is not SearchStatus.EMPTY
