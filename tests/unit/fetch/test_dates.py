"""Publish dates: the string as found, and the day it means."""

from __future__ import annotations

import datetime
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from citeflow.fetch.dates import PageDate, extract_published_date, page_date
from citeflow.fetch.prune import prune

TODAY = datetime.date(2026, 5, 1)


def ld(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


@pytest.mark.parametrize(
    ("html", "date"),
    [
        (ld('{"dateCreated": "2020-01-01", "datePublished": "2020-02-02"}'), "2020-02-02"),
        (ld('{"@graph": [{"x": 1}, {"datePublished": "2020-02-02"}]}'), "2020-02-02"),
        (ld(r'{"datePublished": "2020\u002d02-02"}'), "2020-02-02"),
        (ld('[{"a": {"b": {"dateCreated": "2020-03-03T10:00:00Z"}}}]'), "2020-03-03T10:00:00Z"),
        (ld('{"comment": {"datePublished": "2019-01-01"}, "datePublished": "2020-02-02"}'),
         "2020-02-02"),
        (ld('{"datePublished": "2020-02-02",}') + "<p>", "2020-02-02"),
        (ld('{"dateCreated": "2020-01-01"}') + ld('{"datePublished": "2021-01-01"}'),
         "2021-01-01"),
        ("<script type='application/LD+json'>{\"datePublished\":\"2020-02-02\"}</script>",
         "2020-02-02"),
        ('<meta property="article:published_time" content="2020-02-02T08:00">', "2020-02-02T08:00"),
        ("<meta content=2020-02-02 property=article:published_time>", "2020-02-02"),
        ("<META CONTENT='2020-02-02' NAME='Article:Published_Time'>", "2020-02-02"),
        ('<meta name="pubdate" content="Sun, 02 Feb 2020">', "Sun, 02 Feb 2020"),
        ('<meta name="publish_date" content="2020-02-02">', "2020-02-02"),
        ('<meta itemprop="datePublished" content="2020-02-02">', "2020-02-02"),
        ('<span itemprop="datePublished" content="2020-02-02">then</span>', "2020-02-02"),
        ("<time datetime=2020-02-02>2 Feb</time>", "2020-02-02"),
        ('<time datetime="2019-01-01">x</time><time pubdate datetime="2020-02-02">y</time>',
         "2020-02-02"),
        (ld('{"datePublished": "2020-02-02"}') + '<meta name="date" content="2019-01-01">',
         "2020-02-02"),
        ('<!-- <meta name="date" content="2019-01-01"> -->', None),
        ('<meta name="date" content="">', None),
        ('<meta name="date" content="soon">', None),
        (ld('{"datePublished": 20200202}'), None),
        (ld("[" * 100_000), None),
        ("junk < > & 2020-02-02", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_declared_date(html: str, date: str | None) -> None:
    """Each place a page declares its date in, in order, in whatever spelling of the markup."""
    assert extract_published_date(html) == date


def test_what_is_not_text_has_no_date() -> None:
    """Never raises, whatever it is given."""
    assert extract_published_date(None) is None  # type: ignore[arg-type]
    assert extract_published_date(b"<time datetime=2020-02-02>") is None  # type: ignore[arg-type]


def date_of(html: str) -> PageDate:
    pruned = prune(html)
    return page_date(pruned.html, LexborHTMLParser(pruned.html), pruned.data_blocks, today=TODAY)


def test_the_day_and_how_sure_it_is() -> None:
    """Declared in data: high; in a time element or the usual places of the text: medium."""
    assert date_of(ld('{"datePublished": "2020-02-02T23:30:00+01:00"}')) == PageDate(
        "2020-02-02T23:30:00+01:00", "2020-02-02", "high"
    )
    assert date_of("<time datetime='2020-02-02'>") == PageDate("2020-02-02", "2020-02-02", "medium")
    text = "<html><body><h1>T</h1><p class=date>Published on 2 February 2020</p><p>x</p></body>"
    assert date_of(text) == PageDate(None, "2020-02-02", "medium")
    written = date_of(
        '<html><head><meta name="date" content="2 February 2020"></head><body><p>x</p></body>'
    )
    assert (written.raw, written.day) == ("2 February 2020", "2020-02-02")
    assert date_of("<html><body><p>no date at all</p></body></html>") == PageDate(None, "", "")


@pytest.mark.parametrize("raw", ["2031-01-01", "1815-06-18", "2020-13-45", "0000-00-00"])
def test_a_day_that_cannot_be_is_not_believed(raw: str) -> None:
    """Days to come and days before the web are kept as found and not used."""
    assert date_of(f'<meta name="date" content="{raw}">') == PageDate(raw, "", "")


@pytest.mark.parametrize("piece", ["<meta ", "<time ", "<", '<meta name="date" content="'])
def test_hostile_markup_takes_no_time(piece: str) -> None:
    """400 kB of openings end well within a second of work."""
    started = time.process_time()
    assert extract_published_date(piece * (400_000 // len(piece))) is None
    assert time.process_time() - started < 2


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    """No text makes it fail, as markup, as data or as a value."""
    for html in (text, ld(text), f'<meta name="date" content="{text}">'):
        found = extract_published_date(html)
        assert found is None or 0 < len(found) <= 64
