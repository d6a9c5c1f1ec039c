"""From the bytes of a body to its main text: a pure function, run in a worker process.

Three extractors in turn: trafilatura; where it finds hardly anything, jusText by the page's
language; then resiliparse. The longest answer of those asked is taken: a short page is one
where all three agree that there is little.
"""

from __future__ import annotations

import logging

import msgspec
import trafilatura
from resiliparse.extract.html2text import extract_plain_text

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
from citeflow.fetch.guard import guard
from citeflow.fetch.limits import EXTRACT_LIMITS
from citeflow.fetch.paragraphs import main_paragraphs
from citeflow.fetch.title import Titles, find_titles, without_title_lines

__all__ = ["extract_page", "run"]

logger = logging.getLogger(__name__)


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
        html = guard(source)
        titles = find_titles(html)
        raw, stage = _main_text(html)
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


def _main_text(html: str) -> tuple[str, str]:
    best, best_stage = "", ""
    for stage, extractor in (
        ("trafilatura", _by_trafilatura),
        ("justext", main_paragraphs),
        ("resiliparse", _by_resiliparse),
    ):
        try:
            text = extractor(html)
        except Exception as exc:  # noqa: BLE001 - three libraries' faults on hostile input
            logger.debug("%s failed: %s", stage, exc)
            continue
        if len(text.strip()) > len(best.strip()):
            best, best_stage = text, stage
        if len(best.strip()) >= EXTRACT_LIMITS.short_text_chars:
            break
    return best, best_stage


def _by_trafilatura(html: str) -> str:
    return trafilatura.extract(html, include_comments=False) or ""


def _by_resiliparse(html: str) -> str:
    text = extract_plain_text(
        html,
        main_content=True,
        alt_texts=False,
        comments=False,
        post_meta=False,
        list_bullets=False,
    )
    return str(text)
