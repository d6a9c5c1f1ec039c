"""Excerpts: which part is shown, and that it is verbatim."""

from __future__ import annotations

import hashlib
import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from citeflow.context import render_corpus
from citeflow.context.excerpts import RELEVANT, START, choose_excerpts
from citeflow.context.untrusted import clean_layout
from citeflow.fetch.clean import clean_layout as page_layout
from citeflow.fetch.clean import clean_text as page_text
from citeflow.quality import ScoredSource

TEXT = (
    "Welcome to the blog of a sailor. The weather was fine.\n"
    "Dredging the harbour took a year. Nobody minded the noise.\n"
    "Lunch was good.\nThe harbour channel is now nine metres deep."
)
TOPIC = "harbour dredging"


def test_the_default_is_the_beginning() -> None:
    """The first characters, without white space at the cut."""
    (excerpt,) = choose_excerpts(TEXT, 33, mode=START, topic=TOPIC)
    assert (excerpt.text, excerpt.start, excerpt.end) == (TEXT[:32], 0, 32)
    assert choose_excerpts(TEXT, 33, mode="nonsense", topic=TOPIC) == (excerpt,)
    assert choose_excerpts(TEXT, 0, mode=START, topic="") == ()
    assert choose_excerpts(" \n ", 10, mode=RELEVANT, topic=TOPIC) == ()


def test_the_passages_that_share_words_with_the_topic() -> None:
    """The sentences about the topic, in the order of the page, within the characters allowed."""
    found = choose_excerpts(TEXT, 90, mode=RELEVANT, topic=TOPIC)
    assert [each.text for each in found] == [
        "Dredging the harbour took a year.",
        "The harbour channel is now nine metres deep.",
    ]
    (best,) = choose_excerpts(TEXT, 20, mode=RELEVANT, topic=TOPIC)
    assert best.text == "Dredging the harbour"
    (start,) = choose_excerpts(TEXT, 20, mode=RELEVANT, topic="quantum gravity")
    assert start.start == 0
    (japanese,) = choose_excerpts("昨日は晴れ。港の浚渫。", 20, mode=RELEVANT, topic="港の浚渫")
    assert japanese.text == "港の浚渫。"


@given(st.text(max_size=200), st.integers(0, 60), st.sampled_from([START, RELEVANT]), st.text())
def test_every_excerpt_is_verbatim(text: str, chars: int, mode: str, topic: str) -> None:
    """Offsets and hash lead back to the very characters; together they are not too many."""
    whole = clean_layout(text)
    found = choose_excerpts(text, chars, mode=mode, topic=topic)
    digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()
    assert all(whole[e.start : e.end] == e.text and e.text_sha256 == digest for e in found)
    assert sum(len(each.text) for each in found) <= chars
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))


@given(st.text(alphabet="ab \n\t\x00\u202e\u00a0\u3000\u200b\ufeff\u2028", max_size=40))
def test_text_as_it_is_read_is_text_as_it_is_shown(text: str) -> None:
    """For a page's text the hash is that of the fetch: cleaning it again changes nothing."""
    for once in (page_text(text), page_layout(text), page_layout(text, within=True)):
        assert clean_layout(once) == once


def test_code_is_shown_with_its_indentation() -> None:
    """In the corpus too; an excerpt does not begin with it."""
    text = "def sail(ship):\n    if ship.harbour:\n        return ship.harbour\nThat is all."
    (start,) = choose_excerpts(text, 600, mode=START, topic="")
    assert start.text == text
    (passage,) = choose_excerpts(text, 40, mode=RELEVANT, topic="return ship")
    assert (passage.text, passage.start) == ("return ship.harbour", text.index("return"))
    source = ScoredSource("T", "https://a.example/", "s", "a.example", 1, 1, 1, 1, 1, text)
    assert "\n    if ship.harbour:\n        return ship.harbour\n" in render_corpus(
        sources=[source]
    )


def test_a_long_text_takes_no_time() -> None:
    """A caller's own megabyte, too."""
    started = time.process_time()
    choose_excerpts("harbour " * 200_000, 600, mode=RELEVANT, topic=TOPIC)
    choose_excerpts("x. " * 300_000, 600, mode=RELEVANT, topic=TOPIC)
    assert time.process_time() - started < 3


def test_the_corpus_shows_the_passages() -> None:
    """In the corpus the passages are parted by a line that says that something is left out."""
    source = ScoredSource("T", "https://a.example/", "s", "a.example", 1, 1, 1, 1, 1, TEXT)
    corpus = render_corpus(sources=[source], excerpt_chars=90, excerpt_mode=RELEVANT, topic=TOPIC)
    assert "Source text: Dredging the harbour took a year.\n\u2026\nThe harbour channel" in corpus
