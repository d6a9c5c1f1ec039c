"""Queries and result texts made fit to be sent and stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.search.text import MAX_QUERY_CHARS, clean_query, make_hit

# Hypothesis' text() leaves surrogates out; people and broken decoders do not.
any_text = st.text(alphabet=st.characters(codec=None, categories=None), max_size=200)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("FastAPI streaming", "FastAPI streaming"),
        ("  FastAPI\n\tstreaming ", "FastAPI streaming"),
        ("Fast\ud800API", "FastAPI"),
        ("Fast\x00API", "Fast API"),
        ("", ""),
        (" \n\u3000\ud800\x00", ""),
        ("word " * 20_000, ("word " * 100).rstrip()),
        ("x" * 100_000, "x" * MAX_QUERY_CHARS),
        ("日本語 検索", "日本語 検索"),
    ],
)
def test_query_is_one_sendable_line(query: str, expected: str) -> None:
    """What cannot be sent is removed, what is too long is cut at a word."""
    assert clean_query(query) == expected


@given(any_text)
def test_any_query_becomes_a_bounded_line_that_can_be_encoded(query: str) -> None:
    """No string raises, and cleaning twice changes nothing."""
    cleaned = clean_query(query)
    assert cleaned.encode().decode() == cleaned
    assert len(cleaned) <= MAX_QUERY_CHARS
    assert clean_query(cleaned) == cleaned


@given(any_text, any_text, any_text)
def test_any_result_text_becomes_a_hit_or_nothing(title: str, url: str, snippet: str) -> None:
    """No engine text raises, and what is kept can be stored."""
    hit = make_hit(title, url, snippet)
    if hit is not None:
        for text in (hit.title, hit.url, hit.snippet):
            assert "\x00" not in text
            text.encode()


def test_hit_without_title_is_named_by_its_url() -> None:
    """A result always has something to be called by."""
    hit = make_hit("  ", "https://a.example/", " a\n b ")
    assert hit is not None
    assert (hit.title, hit.snippet) == ("https://a.example/", "a b")


@pytest.mark.parametrize(
    "url", ["", "  ", "https://a.example/a b", "https://a.example/" + "x" * 5000]
)
def test_unusable_url_makes_no_hit(url: str) -> None:
    """A result without a URL that can be asked for is dropped."""
    assert make_hit("title", url, "snippet") is None
