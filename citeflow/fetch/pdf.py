"""The text of a PDF: its first pages, until there is enough of it."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

from citeflow.fetch.clean import clean_line, clean_text, cut, has_words, is_unreadable
from citeflow.fetch.exchange import Extracted, Readability
from citeflow.fetch.limits import EXTRACT_LIMITS

if TYPE_CHECKING:
    import pypdfium2

__all__ = ["read_pdf"]

_STAGE = "pdf"
_PASSWORD = 4  # FPDF_ERR_PASSWORD of fpdfview.h
# PDFium marks a hyphen that only breaks a line with a noncharacter.
_BROKEN_WORD = re.compile("[\ufffe\x02]\\s*\n?\\s*")
_SENTENCE_END = re.compile("[.!?:\u3002\uff01\uff1f][\"'\u201d\u2019)\\]]*\\Z")
# The last line of a paragraph is shorter than the others; this is how much.
_FULL_LINE = 0.75
_METADATA_DATE = re.compile(r"D?:?(\d{4})(\d{2})?(\d{2})?")
_TITLE_CHARS = 300


def read_pdf(data: bytes, max_chars: int, *, today: datetime.date) -> Extracted:
    """The text of a PDF, a paragraph a line, cut at `max_chars`, with the date of its metadata.

    Reads at most `EXTRACT_LIMITS.pdf_pages` pages and stops at the one that fills `max_chars`.
    """
    try:
        import pypdfium2  # only who reads PDFs needs it
    except ImportError:
        return Extracted(Readability.UNSUPPORTED, stage=_STAGE)
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as exc:
        code = getattr(exc, "err_code", None)
        wants_password = code == _PASSWORD
        return Extracted(
            Readability.ENCRYPTED if wants_password else Readability.DAMAGED, stage=_STAGE
        )
    try:
        return _read(document, max_chars, today)
    finally:
        document.close()


def _read(document: pypdfium2.PdfDocument, max_chars: int, today: datetime.date) -> Extracted:
    metadata = document.get_metadata_dict(skip_empty=True)
    title = clean_line(metadata.get("Title", "")[:_TITLE_CHARS])
    raw = metadata.get("CreationDate") or None
    day = _day(raw or "", today)
    pages = min(len(document), EXTRACT_LIMITS.pdf_pages)
    parts: list[str] = []
    chars = broken = 0
    for number in range(pages):
        text = _page_text(document, number)
        if text is None:
            broken += 1
            continue
        parts.append(text)
        chars += len(text)
        if chars > max_chars:
            break
    joined = "\n".join(parts)
    text = clean_text(joined)
    if has_words(text) and not is_unreadable(joined):
        return Extracted(
            Readability.OK,
            cut(text, max_chars),
            title,
            truncated=len(text) > max_chars or len(parts) + broken < len(document),
            stage=_STAGE,
            published_at=clean_line(raw)[:64] if raw else None,
            published_on=day,
            date_confidence="medium" if day else "",
        )
    if text and is_unreadable(joined):
        return Extracted(Readability.MOJIBAKE, title=title, stage=_STAGE)
    if broken == pages:
        return Extracted(Readability.DAMAGED, title=title, stage=_STAGE)
    return Extracted(
        Readability.SCANNED if _has_images(document) else Readability.EMPTY,
        title=title,
        stage=_STAGE,
    )


def _page_text(document: pypdfium2.PdfDocument, number: int) -> str | None:
    """The text of one page, None when the page is damaged."""
    import pypdfium2

    try:
        page = document[number]
        try:
            text_page = page.get_textpage()
            try:
                return _paragraphs(text_page.get_text_range())
            finally:
                text_page.close()
        finally:
            page.close()
    except pypdfium2.PdfiumError:
        return None


def _has_images(document: pypdfium2.PdfDocument) -> bool:
    import pypdfium2
    import pypdfium2.raw

    try:
        page = document[0]
        objects: Any = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE])
        return next(iter(objects), None) is not None
    except pypdfium2.PdfiumError:
        return False


def _paragraphs(text: str) -> str:
    """The lines of a page joined to paragraphs: one ends with a short line or at a blank one."""
    lines = _BROKEN_WORD.sub("", text.replace("\r\n", "\n")).split("\n")
    full = _FULL_LINE * max(map(len, lines), default=0)
    paragraphs: list[str] = []
    current: list[str] = []
    for line in map(str.strip, lines):
        if line:
            current.append(line)
        if current and (not line or (len(line) < full and _SENTENCE_END.search(line))):
            paragraphs.append(" ".join(current))
            current.clear()
    return "\n".join([*paragraphs, " ".join(current)])


def _day(raw: str, today: datetime.date) -> str:
    """The day of a PDF date (PDF 1.7, 7.9.4: D:YYYYMMDDHHmmSS)."""
    found = _METADATA_DATE.match(raw)
    if found is None or found[3] is None:
        return ""
    try:
        day = datetime.date(*map(int, found.groups()))
    except ValueError:
        return ""
    return day.isoformat() if datetime.date(1991, 8, 6) <= day <= today else ""
