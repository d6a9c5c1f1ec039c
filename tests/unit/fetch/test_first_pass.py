"""The cheap reading of a page, when it is trusted, and what is taken out before any parser."""

from __future__ import annotations

import datetime
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from citeflow.fetch.agreement import agree, resembles
from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import ExtractRequest
from citeflow.fetch.extract import extract_page
from citeflow.fetch.first_pass import Frame, by_resiliparse, read_frame
from citeflow.fetch.prune import prune

TODAY = datetime.date(2026, 5, 1)
SENTENCES = (
    "The harbour was dredged in the spring, and ships of a deeper draught have called since then.",
    "Fishermen had asked for it for a decade, because the channel moved after each winter storm.",
    "The cost was shared by the town and the region, which expects more traffic from the north.",
    "Sand from the channel now covers the beach that had been washed away two years before.",
    "A second stage would widen the basin, but nobody has said yet where the money would be.",
    "Pilots say that the turn at the mole remains the hardest part of the whole approach.",
)
ARTICLE = "".join(f"<p>{sentence}</p>" for sentence in SENTENCES)
MENU = "<ul>" + "".join(f"<li><a href=/{n}>Entry {n}</a></li>" for n in range(30)) + "</ul>"


def frame_of(html: str) -> Frame:
    return read_frame(LexborHTMLParser(html))


def test_the_frame_is_the_smallest_element_with_the_paragraphs() -> None:
    """Menus, named asides, hidden parts, bylines and labels around the text stay out."""
    html = f"""<body class="no-sidebar"><div class="Site-Nav">{MENU}</div><div id=main>
    <span>By Someone</span>{ARTICLE}<div class=related-posts><p>{"Another story here. " * 9}</p>
    </div><div hidden><p>{"Hidden words here. " * 9}</p></div><div>Share this</div></div>{MENU}"""
    assert frame_of(html) == Frame("\n".join(SENTENCES), listing=False)


def test_comments_stay_out_even_when_there_are_more_of_them() -> None:
    """Comments are known by name, not by size."""
    comments = "".join(f"<div class=comment><p>{'I think so too. ' * 8}</p></div>" for _ in "12345")
    assert "I think so" not in frame_of(f"<main>{ARTICLE}{comments}</main>").text


def test_inline_tags_do_not_split_words_and_code_keeps_its_lines() -> None:
    """Inline elements are read through, code line by line, data rows as rows."""
    html = f"""<article><p>The <b>har</b>bour was dredged in the spring of this year, they said.</p>
    {ARTICLE}<pre>for x in y:\n    print(x)</pre><table><tr><th>Year</th><th>Ships</th></tr>
    <tr><td>2020</td><td>17</td></tr></table><p>{SENTENCES[0]}</p></article>"""
    lines = frame_of(html).text.split("\n")
    assert lines[0].startswith("The harbour was dredged")
    assert lines[-5:-1] == ["for x in y:", "    print(x)", "Year | Ships", "2020 | 17"]


def test_a_list_of_articles_is_not_trusted() -> None:
    """Several headings that are links make a front page, whoever agrees."""
    teaser = f"<h2><a href=/x>A heading that leads to an article</a></h2>{ARTICLE}"
    frame = frame_of(f"<main>{teaser * 3}</main>")
    assert frame.listing
    assert not agree(frame, frame.text)


def test_only_agreement_is_trusted() -> None:
    """The same text is trusted; a short one, another one, and one with a large part more not."""
    text = "\n".join(SENTENCES)
    frame = Frame(text, listing=False)
    assert agree(frame, text)
    assert not agree(Frame(text[:300], listing=False), text[:300])
    assert not agree(frame, text[::-1])
    assert not agree(frame, text + "\n" + "words of another long line that is not there " * 3)
    assert resembles(text, text[: len(text) // 2])
    assert not resembles(text, text[::-1])
    assert not resembles("", "")


def test_a_plain_article_is_read_by_the_first_pass_and_others_by_the_thorough_one() -> None:
    """The stage says which reading the text is of."""

    def stage(html: str) -> str:
        return extract_page(ExtractRequest(html.encode(), Kind.HTML, "", 2000, TODAY)).stage

    assert stage(f"<body>{MENU}<article>{ARTICLE}</article>") == "frame"
    assert stage(f"<body><p>{SENTENCES[0]}</p>") in ("trafilatura", "justext", "resiliparse")


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 1_500 + ARTICLE,
        f"<ul>{'<li>' + SENTENCES[0]}" * 5_000,
        "<blockquote>" * 1_000 + ARTICLE * 20,
        f"<table><tr><td>{ARTICLE}" * 500,
        f"<a href=x>{SENTENCES[0]}" * 10_000,
        "",
    ],
)
def test_what_is_too_deep_or_too_long_is_left_alone(html: str) -> None:
    """The cheap reading stays cheap."""
    tree = LexborHTMLParser(html)
    started = time.process_time()
    read_frame(tree)
    assert time.process_time() - started < 5


@given(st.text(alphabet="<>/!-abdivpsctenul \"'=", max_size=400))
def test_any_markup_is_read(html: str) -> None:
    """No markup makes the cheap readings fail."""
    pruned = prune(html).html
    agree(frame_of(pruned), by_resiliparse(pruned))


def test_prune_takes_out_what_is_never_text() -> None:
    """Scripts, styles, drawings and comments go; data blocks and noscript are handed on."""
    html = (
        "a<!-- <p>no -->b<SCRIPT>1 < 2 <p></script >c<style>x</style>d<svg><text>no</text></svg>e"
        '<script type="application/ld+json">{"a": 1}</script>f<noscript><img>On, please</noscript>g'
        "<template><p>no</p></template>h<iframe src=x></iframe>i"
    )
    assert prune(html) == ("abcdefghi", ('{"a": 1}',), "<img>On, please")


def test_prune_leaves_what_is_never_closed_and_the_posts_of_a_forum() -> None:
    """An unclosed element is for the parsers; a forum's data says that comments are its text."""
    for text in ("a<script>b", "a<!-- b", "a<style", "<script", "a<svg/>b", "<scripts>x</scripts>"):
        assert prune(text).html == text
    forum = '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>'
    assert prune(forum).html == forum


@pytest.mark.parametrize("piece", ["<script>", "<!--", "<svg><script>", "<style></script>", "<"])
def test_prune_is_linear(piece: str) -> None:
    """Half a megabyte of openings ends at once."""
    started = time.process_time()
    prune(piece * (500_000 // len(piece)))
    assert time.process_time() - started < 2
