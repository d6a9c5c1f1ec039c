"""The text of PDFs, and the ways they have none."""

from __future__ import annotations

import datetime
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citeflow.fetch.exchange import Extracted, Readability
from citeflow.fetch.limits import EXTRACT_LIMITS
from citeflow.fetch.pdf import read_pdf
from tests.support.pdfs import pdf

TODAY = datetime.date(2026, 5, 1)
LINES = (
    "The harbour was dredged in the spring, and ships of a deeper",
    "draught have called since then.",
    "Fishermen had asked for it for ten years, because the channel",
    "moved after each winter storm.",
)


def read(data: bytes, max_chars: int = 2000) -> Extracted:
    return read_pdf(data, max_chars, today=TODAY)


def test_lines_become_paragraphs_and_the_metadata_is_read() -> None:
    """The text of all pages, a paragraph a line, with title and date."""
    info = "/Title(The harbour)/CreationDate(D:20200202103000+01'00')"
    page = read(pdf([LINES, ["On the second page there is more of it."]], info=info))
    assert page == Extracted(
        Readability.OK,
        text=f"{LINES[0]} {LINES[1]}\n{LINES[2]} {LINES[3]}\n"
        "On the second page there is more of it.",
        title="The harbour",
        stage="pdf",
        published_at="D:20200202103000+01'00'",
        published_on="2020-02-02",
        date_confidence="medium",
    )


def test_reading_stops_at_the_characters_wanted() -> None:
    """A PDF of 20,000 pages costs what its first pages cost."""
    data = pdf([LINES] * 20_000)
    started = time.process_time()
    page = read(data, 500)
    assert time.process_time() - started < 3
    assert page.truncated
    assert 490 < len(page.text) <= 500
    many = read(data, 1_000_000)
    assert many.text.count("harbour") == EXTRACT_LIMITS.pdf_pages
    assert many.truncated


@pytest.mark.parametrize(
    ("data", "readability"),
    [
        (pdf([LINES], encrypted=True), Readability.ENCRYPTED),
        (pdf([[]] * 3, image=True), Readability.SCANNED),
        (pdf([[]]), Readability.EMPTY),
        (pdf([["ok"]]), Readability.EMPTY),
        (pdf([LINES])[:300], Readability.DAMAGED),
        (b"%PDF-1.7\n" + bytes(range(256)) * 100, Readability.DAMAGED),
        (b"%PDF-1.4", Readability.DAMAGED),
        (b"", Readability.DAMAGED),
    ],
)
def test_each_failure_has_its_name(data: bytes, readability: Readability) -> None:
    """A password, pictures of text, no text and damage are told apart."""
    page = read(data)
    assert (page.readability, page.text) == (readability, "")


@pytest.mark.parametrize("date", ["D:2020", "D:99999999", "yesterday", "D:20310101", ""])
def test_a_date_that_is_none_is_not_believed(date: str) -> None:
    """Metadata dates that are incomplete, impossible or to come give no day."""
    page = read(pdf([LINES], info=f"/CreationDate({date})"))
    assert (page.readability, page.published_on) == (Readability.OK, "")


def test_without_the_library_a_pdf_is_an_unsupported_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading PDFs is the only thing that needs it."""
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    assert read(pdf([LINES])).readability is Readability.UNSUPPORTED


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_pdfs_are_outcomes(data: st.DataObject) -> None:
    """Whatever bytes are changed or cut off, there is an answer."""
    whole = bytearray(pdf([LINES], info="/Title(x)", image=True))
    for _ in range(data.draw(st.integers(0, 20))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
