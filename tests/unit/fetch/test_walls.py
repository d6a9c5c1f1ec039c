"""Pages that were served and are not what was asked for."""

from __future__ import annotations

import datetime

import pytest

from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import Extracted, ExtractRequest, Readability
from citeflow.fetch.extract import extract_page
from citeflow.fetch.outcome import FetchStatus
from citeflow.fetch.walls import without_consent_lines
from tests.support.failure_pages import PAGES, REAL

CASES = [(kind, name) for kind, pages in PAGES.items() for name in pages]


def read(html: str) -> Extracted:
    today = datetime.date(2026, 5, 1)
    return extract_page(ExtractRequest(html.encode(), Kind.HTML, "utf-8", 8000, today))


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_each_failure_has_its_name(kind: str, name: str) -> None:
    """An example of each kind is named as what it is, and yields no text."""
    page = read(PAGES[kind][name])
    assert (page.readability.value, page.text) == (kind, "")


@pytest.mark.parametrize("name", REAL)
def test_real_pages_are_read(name: str) -> None:
    """Articles about captchas and cookies, or with forms and banners beside them, are articles."""
    page = read(REAL[name])
    assert page.readability is Readability.OK
    assert "We use cookies" not in page.text
    assert "Accept all" not in page.text


def test_consent_sentences_at_the_edges_of_a_text_go() -> None:
    """A banner that an extractor took for the first or last paragraph is not text."""
    text = "Dredging began.\nIt took a year.\nShips came.\nMore ships came.\nAll is well."
    for banner in (
        "We use cookies to improve your experience.",
        "Diese Website benutzt Cookies, um die Nutzerfreundlichkeit zu verbessern.",
        "By choosing I Accept, you consent to our use of cookies.",
        "Nous utilisons des cookies.",
    ):
        assert without_consent_lines(f"{banner}\n{text}\n{banner}") == text
    assert without_consent_lines(text) == text


def test_every_reason_of_extraction_is_a_status() -> None:
    """What a worker says can be said to the caller."""
    assert {each.value for each in Readability} <= {each.value for each in FetchStatus}
