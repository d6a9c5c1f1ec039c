"""From the bytes of a body to its main text: a pure function, run in a worker process.

First two cheap and unlike readings (`first_pass`); where they agree, that is it. Where they do
not, trafilatura: in its quick mode, and in its thorough one when the quick one resembles neither
of the cheap readings. Where it finds hardly anything, jusText by the page's language, then
resiliparse; the longest answer of those is taken: a short page is one where all agree that there
is little.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec
import trafilatura
from selectolax.lexbor import LexborHTMLParser

from citeflow.fetch.charset import decode
from citeflow.fetch.clean import (
    clean_text,
    cut,
    has_words,
    is_unreadable,
    without_surrogates,
)
from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import Extracted, ExtractRequest, Readability
from citeflow.fetch.first_pass import Frame, agree, by_resiliparse, read_frame, resembles
from citeflow.fetch.guard import guard
from citeflow.fetch.limits import EXTRACT_LIMITS
from citeflow.fetch.paragraphs import main_paragraphs
from citeflow.fetch.prune import prune
from citeflow.fetch.title import Titles, find_titles, without_title_lines

__all__ = ["extract_page", "run"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
# Scripts are taken out before the characters are counted; a page is not all scripts.
_READ_AHEAD = 2


def run(payload: bytes) -> bytes:
    """`extract_page` between bytes, the form a worker process needs."""
    request = msgspec.msgpack.decode(payload, type=ExtractRequest)
    return msgspec.msgpack.encode(extract_page(request))


def extract_page(request: ExtractRequest) -> Extracted:
    """The main text of a body, without the title lines at its head, cut at `max_chars`."""
    decoded = decode(request.data, request.charset)
    source = without_surrogates(decoded.text)
    titles = Titles()
    if request.kind is Kind.HTML:
        pruned = prune(source[: _READ_AHEAD * EXTRACT_LIMITS.html_chars])
        html = guard(pruned.html)
        tree = LexborHTMLParser(html)
        titles = find_titles(tree)
        raw, stage = _main_text(html, tree)
    else:
        raw, stage = source[: EXTRACT_LIMITS.html_chars], "plain"
    unreadable = is_unreadable(raw)
    text = without_title_lines(clean_text(raw), titles)
    if unreadable or not has_words(text):
        readability = Readability.MOJIBAKE if unreadable else Readability.EMPTY
        return Extracted(readability, "", titles.best, decoded.charset, False, stage)
    short = cut(text, request.max_chars)
    return Extracted(
        Readability.OK, short, titles.best, decoded.charset, len(text) > request.max_chars, stage
    )


def _main_text(html: str, tree: LexborHTMLParser) -> tuple[str, str]:
    frame = _attempt("frame", lambda: read_frame(tree)) or Frame("", listing=False)
    second = _attempt("resiliparse", lambda: by_resiliparse(html)) or ""
    if agree(frame, second):
        return frame.text, "frame"
    best = _attempt("trafilatura", lambda: _by_trafilatura(html, fast=True)) or ""
    if not (resembles(best, second) or resembles(best, frame.text)):
        # Three readings, no two alike: worth the time of the one that weighs several inside.
        thorough = _attempt("trafilatura", lambda: _by_trafilatura(html, fast=False)) or ""
        best = thorough or best
    stage = "trafilatura"
    if len(best.strip()) < EXTRACT_LIMITS.short_text_chars:
        others = (
            ("justext", _attempt("justext", lambda: main_paragraphs(html)) or ""),
            ("resiliparse", second),
        )
        for name, text in others:
            if len(text.strip()) > len(best.strip()):
                best, stage = text, name
            if len(best.strip()) >= EXTRACT_LIMITS.short_text_chars:
                break
    return best, stage if best else ""


def _attempt(name: str, extract: Callable[[], _T]) -> _T | None:
    try:
        return extract()
    except Exception as exc:  # noqa: BLE001 - four libraries' faults on hostile input
        logger.debug("%s failed: %s", name, exc)
        return None


def _by_trafilatura(html: str, *, fast: bool) -> str:
    return trafilatura.extract(html, include_comments=False, fast=fast) or ""
