"""From the bytes of a body to its main text: a pure function, run in a worker process.

First two cheap and unlike readings (`first_pass`); where they agree, that is it. Where they do
not, trafilatura: in its quick mode, and in its thorough one when the quick one resembles neither
of the cheap readings. Where it finds hardly anything, jusText by the page's language, then
resiliparse; the longest answer of those is taken: a short page is one where all agree that there
is little.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeVar

import msgspec
import trafilatura
from selectolax.lexbor import LexborHTMLParser

from citeflow.fetch.agreement import agree, resembles
from citeflow.fetch.charset import decode
from citeflow.fetch.clean import (
    clean_layout,
    clean_text,
    cut,
    has_words,
    is_unreadable,
    without_surrogates,
)
from citeflow.fetch.content_type import Kind
from citeflow.fetch.dates import PageDate, page_date
from citeflow.fetch.exchange import Extracted, ExtractRequest, Readability
from citeflow.fetch.first_pass import Frame, by_resiliparse, read_frame
from citeflow.fetch.guard import beginning, guard
from citeflow.fetch.limits import EXTRACT_LIMITS
from citeflow.fetch.paragraphs import main_paragraphs
from citeflow.fetch.pdf import read_pdf
from citeflow.fetch.prune import prune
from citeflow.fetch.title import find_titles, without_title_lines
from citeflow.fetch.walls import wall_of, without_consent_lines

__all__ = ["extract_page", "run"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
# How resiliparse parts the cells of a row; after that white space is collapsed.
_CELLS = re.compile(r"(?<=\S)\t\t(?=\S)")
# Scripts are taken out before the characters are counted; a page is not all scripts.
_READ_AHEAD = 2


def run(payload: bytes) -> bytes:
    """`extract_page` between bytes, the form a worker process needs."""
    request = msgspec.msgpack.decode(payload, type=ExtractRequest)
    return msgspec.msgpack.encode(extract_page(request))


def extract_page(request: ExtractRequest) -> Extracted:
    """The main text of a body, without the title lines at its head, cut at `max_chars`."""
    if request.kind is Kind.PDF:
        return read_pdf(request.data, request.max_chars, today=request.today)
    decoded = decode(request.data, request.charset)
    source = without_surrogates(decoded.text)
    if request.kind is Kind.TEXT:
        raw = source[: EXTRACT_LIMITS.html_chars]
        found = _outcome(raw, clean_layout(raw, within=True), request.max_chars)
        return msgspec.structs.replace(found, charset=decoded.charset, stage="plain")
    source = source[: _READ_AHEAD * EXTRACT_LIMITS.html_chars]
    pruned = prune(source)
    html = guard(pruned.html)
    tree = LexborHTMLParser(html)
    titles = find_titles(tree)
    raw, stage = _main_text(html, tree)
    # Without code on the page, indentation is that of its source.
    clean = clean_layout if tree.css_first("pre") is not None else clean_text
    text = without_title_lines(clean(raw), titles)
    found = _outcome(raw, without_consent_lines(text), request.max_chars)
    if found.readability is not Readability.MOJIBAKE:
        wall = wall_of(
            source=source, tree=tree, title=titles.best, text=text, noscript=pruned.noscript
        )
        if wall is not None:
            found = Extracted(wall)
    date = PageDate(None, "", "")
    if found.readability is Readability.OK:
        date = page_date(_beginning(html), tree, pruned.data_blocks, today=request.today)
    return msgspec.structs.replace(
        found,
        title=titles.best,
        charset=decoded.charset,
        stage=stage,
        published_at=date.raw,
        published_on=date.day,
        date_confidence=date.confidence,
    )


def _outcome(raw: str, text: str, max_chars: int) -> Extracted:
    if is_unreadable(raw):
        return Extracted(Readability.MOJIBAKE)
    if not has_words(text):
        return Extracted(Readability.EMPTY)
    return Extracted(Readability.OK, cut(text, max_chars), truncated=len(text) > max_chars)


def _main_text(html: str, tree: LexborHTMLParser) -> tuple[str, str]:
    frame = _attempt("frame", lambda: read_frame(tree)) or Frame("", listing=False)
    second = _attempt("resiliparse", lambda: by_resiliparse(html)) or ""
    if agree(frame, second):
        return frame.text, "frame"
    html = _beginning(html)
    best = _attempt("trafilatura", lambda: _by_trafilatura(html, fast=True)) or ""
    alike = resembles(best, second) or resembles(best, frame.text)
    if not alike and html.count("<") <= EXTRACT_LIMITS.costliest_tags:
        # Three readings, no two alike: worth the time of the one that weighs several inside.
        thorough = _attempt("trafilatura", lambda: _by_trafilatura(html, fast=False)) or ""
        best = thorough or best
    stage = "trafilatura"
    if len(best.strip()) < EXTRACT_LIMITS.short_text_chars:
        others = (
            ("justext", _attempt("justext", lambda: main_paragraphs(html)) or ""),
            ("resiliparse", _CELLS.sub(" | ", second)),
        )
        for name, text in others:
            if len(text.strip()) > len(best.strip()):
                best, stage = text, name
            if len(best.strip()) >= EXTRACT_LIMITS.short_text_chars:
                break
    return best, stage if best else ""


def _beginning(html: str) -> str:
    return beginning(html, tags=EXTRACT_LIMITS.costly_tags, chars=EXTRACT_LIMITS.costly_chars)


def _attempt(name: str, extract: Callable[[], _T]) -> _T | None:
    try:
        return extract()
    except Exception as exc:  # noqa: BLE001 - four libraries' faults on hostile input
        logger.debug("%s failed: %s", name, exc)
        return None


def _by_trafilatura(html: str, *, fast: bool) -> str:
    return trafilatura.extract(html, include_comments=False, fast=fast) or ""
