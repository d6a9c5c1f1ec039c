"""Extraction as a function of bytes: the chain, its second stage, and hostile input."""

from __future__ import annotations

import datetime
import itertools
import re
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from justext.core import revise_paragraph_classification
from selectolax.lexbor import LexborHTMLParser

from citeflow.fetch.clean import clean_text
from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import Extracted, ExtractRequest, Readability
from citeflow.fetch.extract import extract_page, run
from citeflow.fetch.paragraphs import main_paragraphs, page_language, revise_linear
from citeflow.fetch.title import Titles, find_titles, without_title_lines
from tests.support.hostile_pages import HOSTILE

TODAY = datetime.date(2026, 5, 1)
GERMAN = (
    "Die Gemeinde hat im vergangenen Jahr beschlossen, dass die alte Brücke über den Fluss nicht "
    "mehr für den Verkehr geöffnet wird, weil die Pfeiler nach dem Hochwasser nicht sicher sind. "
)
ENGLISH = (
    "The town decided last year that the old bridge over the river would not be opened for traffic "
    "again, because the pillars were no longer safe after the flood that came in the spring. "
)
MENU = "<ul>" + "<li><a href=/x>Menu entry</a></li>" * 20 + "</ul>"


def extract(html: str | bytes, kind: Kind = Kind.HTML, max_chars: int = 2000) -> Extracted:
    data = html.encode() if isinstance(html, str) else html
    return extract_page(ExtractRequest(data, kind, "", max_chars, TODAY))


def test_the_article_is_found_among_the_rest() -> None:
    """Menus, scripts, banners and footers stay out; paragraphs are lines; tags do not split."""
    html = f"""<html><head><title>Bridge closed - The Paper</title></head><body>
    <nav>{MENU}</nav><article><h1>Bridge closed</h1><p>{ENGLISH}</p>
    <p>Hello <b>big</b> world, the rate is <i>5</i>%. {ENGLISH}</p></article>
    <aside>{MENU}</aside><script>var x = "script";</script><footer>Imprint</footer></body></html>"""
    page = extract(html)
    assert page.text.split("\n") == [
        ENGLISH.strip(),
        f"Hello big world, the rate is 5%. {ENGLISH.strip()}",
    ]
    assert (page.title, page.stage) == ("Bridge closed", "trafilatura")


def test_a_short_page_yields_its_text() -> None:
    """Little text is still text; a button is not."""
    assert extract("<p>Closed on Mondays, open until nine.</p>").text == (
        "Closed on Mondays, open until nine."
    )
    assert extract("<p>OK</p>").readability is Readability.EMPTY


SENTENCE = "Lithium cells lose capacity when repeatedly charged above eighty percent."
CODE = """<pre><code><span>def</span> <span>main</span>(argv):
    <span>for</span> ship in argv:
\tif ship:
            print(ship)
</code></pre>"""
LINES = ["def main(argv):", "    for ship in argv:", "    if ship:", "            print(ship)"]
TABLE = """<table><tr><th>Ship</th><th>Draught in<br>metres</th></tr>
<tr><td>Anna</td><td>4.2</td></tr><tr><td>Berta <b>I</b>I</td><td><p>6.1</p></td></tr></table>"""
ROWS = ["Ship | Draught in metres", "Anna | 4.2", "Berta II | 6.1"]


@pytest.mark.parametrize("trusted", [True, False])
def test_code_keeps_its_indentation_and_tables_their_cells(trusted: bool) -> None:
    """By the cheap reading and by the thorough one."""
    prose = "".join(f"<p>{SENTENCE} Paragraph {n} of the page.</p>" for n in range(8))
    heads = "".join(f"<h2><a href=/{n}>A heading that is a link {n}</a></h2>" for n in range(4))
    html = f"<article>{prose}{CODE}{prose}{TABLE}{'' if trusted else heads}{prose}</article>"
    found = extract(html, max_chars=100_000)
    assert (found.stage == "frame") == trusted
    lines = found.text.split("\n")
    at = lines.index(LINES[0])
    assert lines[at : at + 4] == LINES
    rows = [re.sub(r"^\| | \|$", "", line) for line in lines]
    assert [row for row in ROWS if row in rows] == ROWS


def test_lines_within_code_may_be_elements() -> None:
    """Line breaks and blocks in it part lines as newlines do."""
    prose = "".join(f"<p>{SENTENCE} Paragraph {n} of the page.</p>" for n in range(8))
    code = "<pre>if a:<br>    b()<div>    c()\n</div><div>d()</div></pre>"
    lines = extract(f"<article>{prose}{code}{prose}</article>", max_chars=10_000).text.split("\n")
    at = lines.index("if a:")
    assert lines[at : at + 4] == ["if a:", "    b()", "    c()", "d()"]


def test_indentation_is_bounded() -> None:
    """A line of spaces is not a way to fill a text."""
    text = extract(f"{SENTENCE}\n{' ' * 5000}far{' ' * 5000}\n\t\tnear", Kind.TEXT).text
    assert text.split("\n") == [SENTENCE, " " * 40 + "far", " " * 8 + "near"]


def test_plain_text_is_taken_as_it_is() -> None:
    """Plain text keeps its lines and their spaces, also ones that look like markup."""
    text = "First line of <some> text\n\n  second line & more\r\nthird\0 line"
    assert extract(text, Kind.TEXT).text == (
        "First line of <some> text\n  second line & more\nthird line"
    )


def test_the_second_stage_uses_the_language_of_the_page() -> None:
    """jusText finds German text in a page that says it is English."""
    html = f"<html lang=en><body>{MENU}<p>{GERMAN * 2}</p>{MENU}</body></html>"
    assert main_paragraphs(html).strip() == (GERMAN * 2).strip()
    assert page_language(html, [GERMAN]) == "de"
    assert page_language("<html lang=fr-CA>", ["menu"]) == "fr"


def test_the_second_stage_handles_short_paragraphs_and_nothing() -> None:
    """Pages of short paragraphs get another pass; comments and blanks give nothing."""
    sentence = "This is a line of the news that we have for you."
    html = f"<body>{''.join(f'<p>{sentence}</p>' for _ in range(8))}</body>"
    assert main_paragraphs(html).count(sentence) == 8
    for nothing in ("", "<!-- x -->", "   ", "<html></html>", "<?xml version='1.0'?>"):
        assert main_paragraphs(nothing) == ""


def library_labels(labels: list[str]) -> list[str]:
    paragraphs = [SimpleNamespace(cf_class=label, heading=False, text="") for label in labels]
    revise_paragraph_classification(paragraphs)
    return [paragraph.class_type for paragraph in paragraphs]


@given(st.lists(st.sampled_from(["good", "bad", "short", "neargood"]), max_size=30))
def test_the_linear_sweep_gives_the_labels_of_the_library(labels: list[str]) -> None:
    """The linear rewrite of jusText's context step decides as the library does."""
    assert revise_linear(labels) == library_labels(labels)


def test_the_linear_sweep_on_all_short_inputs() -> None:
    """The same for every sequence of up to five labels."""
    for n in range(6):
        for labels in itertools.product(["good", "bad", "short", "neargood"], repeat=n):
            assert revise_linear(list(labels)) == library_labels(list(labels))


def titles_of(html: str) -> Titles:
    return find_titles(LexborHTMLParser(html))


def test_titles() -> None:
    """The heading that the document's title repeats wins; else the title without the site."""
    html = "<title>A long way home | Site</title><h1>Site</h1><h1>A long way home</h1>"
    assert titles_of(html).best == "A long way home"
    assert titles_of("<title>A long way home | The Paper</title>").best == "A long way home"
    og = '<meta property="og:title" content="Open title"><title>Other</title>'
    assert titles_of(og).best == "Open title"
    assert titles_of("<p>no title</p>").best == ""
    assert titles_of("<title> \u202e A\n b </title>").best == "A b"


def test_leading_title_lines_are_dropped() -> None:
    """Lines at the head that repeat the title go; a text that is only the title stays."""
    titles = Titles(("Bridge closed for good",))
    assert without_title_lines("Bridge closed for good!\nText.", titles) == "Text."
    assert without_title_lines("Bridge closed for good", titles) == "Bridge closed for good"
    assert without_title_lines("Text.\nBridge closed for good", titles).startswith("Text.")
    assert without_title_lines("\n".join(titles * 5), titles).count("\n") == 1


@given(st.text(max_size=300))
def test_clean_text_is_clean(text: str) -> None:
    """No hidden characters, no blank lines, no doubled spaces; cleaning twice changes nothing."""
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    assert cleaned.isprintable() or "\n" in cleaned or not cleaned.isascii()
    assert not any(c in cleaned for c in "\0\x1b\x7f\x85\u202a\u202e\u2066\u2069\u200e\ufeff\r\t")
    assert "\n\n" not in cleaned
    assert "  " not in cleaned
    cleaned.encode()


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(30)
def test_hostile_input_ends_quickly(name: str) -> None:
    """Each page made to break a parser ends in an answer, well within the worker's patience."""
    page = extract(HOSTILE[name])
    assert len(page.text) <= 2000
    assert "root:" not in page.text


@given(st.binary(max_size=300), st.sampled_from(list(Kind)))
def test_any_bytes_are_a_page(data: bytes, kind: Kind) -> None:
    """No body makes extraction fail, and the form for workers gives the same answer."""
    request = ExtractRequest(data, kind, "", 100, TODAY)
    page = extract_page(request)
    assert len(page.text) <= 100
    answer = msgspec.msgpack.decode(run(msgspec.msgpack.encode(request)), type=Extracted)
    assert answer == page
