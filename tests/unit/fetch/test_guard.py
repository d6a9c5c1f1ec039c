"""The pass in front of the parsers."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.fetch.guard import guard
from citeflow.fetch.limits import EXTRACT_LIMITS

SMALL = dataclasses.replace(
    EXTRACT_LIMITS,
    html_chars=1000,
    tags=20,
    tag_chars=50,
    plain_tag_chars=30,
    attributes=5,
    depth=5,
)


@pytest.mark.parametrize(
    "html",
    [
        "",
        "plain text, 1 < 2 and 3 > 2",
        "<html><body><p>one<br>two</p><img src=x></body></html>",
        "<script>if (a<b) { for(;;){} } // " + "<x" * 100 + "</script><p>text</p>",
        "<style>p > a { color: red }" + " " * 100 + "</style><p>text</p>",
        "<svg>" + "<path/>" * 10 + "</svg>",
        "<p>one<p>two<p>three</p>",
    ],
)
def test_ordinary_pages_are_unchanged(html: str) -> None:
    """What is within the limits comes out as it went in; scripts are not taken for tags."""
    assert guard(html, SMALL) == html


def test_long_tags_and_comments_are_dropped() -> None:
    """A tag or a comment above the limit goes, the text around it stays."""
    assert guard(f"<p>one<img src='{'x' * 100}'>two</p>", SMALL) == "<p>onetwo</p>"
    assert guard("<p>one<br a b c=1 d e='2 3 4 5' f g h i j=111>two</p>", SMALL) == "<p>onetwo</p>"
    kept = "<p>one<br a='1 2 3 4 5 6 7 8 9 10 11 12 13 14'>two</p>"
    assert guard(kept, SMALL) == kept
    assert guard(f"one<!-- {'> ' * 100} -->two", SMALL) == "onetwo"
    assert guard(f"one<a {'b ' * 100}", SMALL) == "one"


def test_text_and_tags_are_cut() -> None:
    """The cut is at the number of characters, and before the first tag too many."""
    assert len(guard("x" * 5000, SMALL)) == 1000
    assert guard("<br>x" * 100, SMALL) == "<br>x" * 20


def test_deep_nesting_loses_its_markup() -> None:
    """Elements nested too deep become plain text."""
    assert guard("<div>" * 6 + "text" + "</div>" * 6, SMALL).split() == ["text"]
    assert "<" not in guard("<div/>" * 10 + "text", SMALL)
    assert guard("<div>x</div>" * 8, SMALL) == "<div>x</div>" * 8


@given(
    st.lists(
        st.sampled_from(["<p>", "</p>", "<", ">", "<!--", "-->", "<script>", "</script>", "<a b='",
                         "'", "text ", "<br/>", "<!", "</", "<style", "<svg", "é"]),
        max_size=60,
    )
)  # fmt: skip
def test_any_soup_comes_out_no_longer(parts: list[str]) -> None:
    """The guard only takes away."""
    html = "".join(parts)
    assert len(guard(html, SMALL)) <= len(html)


@pytest.mark.parametrize(
    "html",
    ["<" * 2_000_000, "<a" * 1_000_000, "<!--" * 500_000, "<script>" * 250_000,
     "<style>" * 250_000, "<a b='" * 300_000, "</" * 1_000_000, "<a>" * 700_000,
     "<!-- -->" * 250_000, "<textarea><style><script>" * 80_000],
)  # fmt: skip
@pytest.mark.timeout(10)
def test_the_guard_itself_is_linear(html: str) -> None:
    """Text made to be searched again and again is passed over once."""
    assert len(guard(html)) <= len(html)
