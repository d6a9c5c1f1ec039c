"""What kind of text a body is, from its Content-Type and from its first bytes."""

from __future__ import annotations

import codecs
import enum
import re

__all__ = [
    "PDF_TYPES",
    "SNIFF_BYTES",
    "Kind",
    "declared_kind",
    "parse_content_type",
    "sniffed_kind",
]

# What the WHATWG MIME sniffing standard reads ("resource header", 1,445 bytes), rounded.
SNIFF_BYTES = 1500


class Kind(enum.StrEnum):
    """How the text of a body is found."""

    HTML = "html"
    """HTML, XHTML or other XML: by extraction of the main text."""
    TEXT = "text"
    """Plain text or JSON: it is the text."""
    PDF = "pdf"
    """PDF: by reading its pages."""


_DECLARED = {
    "text/html": Kind.HTML,
    "application/xhtml+xml": Kind.HTML,
    "application/xml": Kind.HTML,
    "text/xml": Kind.HTML,
    "application/rss+xml": Kind.HTML,
    "application/atom+xml": Kind.HTML,
    "text/plain": Kind.TEXT,
    "application/json": Kind.TEXT,
    "application/ld+json": Kind.TEXT,
    "text/json": Kind.TEXT,
    "application/pdf": Kind.PDF,
    "application/x-pdf": Kind.PDF,
}
# Servers that do not know say one of these; the bytes decide.
_UNDECLARED = frozenset({"", "application/octet-stream", "application/unknown", "unknown/unknown"})

PDF_TYPES = frozenset({"application/pdf", "application/x-pdf", "application/octet-stream"})
"""The media types under which PDFs are served on purpose."""

_BINARY_STARTS = (
    b"%!PS-Adobe-",
    b"\x89PNG\r\n\x1a\n",
    b"GIF87a",
    b"GIF89a",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"Rar!\x1a\x07",
    b"7z\xbc\xaf\x27\x1c",
    b"BZh",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"\x7fELF",
    b"MZ\x90\x00",
    b"RIFF",
    b"OggS",
    b"ID3",
    b"\x1aE\xdf\xa3",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"wOFF",
    b"wOF2",
    b"\x00asm",
)
_WIDE_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # the UTF-32 ones start like them
# Control characters no text has: all but tab, line feed, form feed, return, escape (ISO-2022).
_BINARY_BYTES = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0C, 0x0D, 0x1B})
_HTML_START = re.compile(
    rb"\s*(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html|head|body|title|meta|script|style"
    rb"|div|article|main|h1|p|table)\b",
    re.IGNORECASE | re.DOTALL,
)
# Readers accept it anywhere in the first kilobyte (PDF 1.7, appendix H, note 13).
_PDF_START = re.compile(rb"[^<]{0,1019}%PDF-[12]\.")
_XML_START = re.compile(rb"\s*<\?xml\b", re.IGNORECASE)


def parse_content_type(header: str) -> tuple[str, str]:
    """The media type and the charset of a Content-Type header, in lower case, blank if absent."""
    media_type, _, parameters = header.partition(";")
    charset = ""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").strip().lower()
            break
    return media_type.strip().lower(), charset


def declared_kind(media_type: str) -> Kind | None:
    """The kind a media type declares; None for one that is not read.

    A type that declares nothing counts as HTML here, and `sniffed_kind` decides.
    """
    if media_type in _UNDECLARED:
        return Kind.HTML
    return _DECLARED.get(media_type)


def sniffed_kind(media_type: str, charset: str, start: bytes) -> Kind | None:
    """The kind of a body by its media type and its first bytes; None when it is not text.

    Bytes that are not text overrule any type. HTML that is declared as plain text is HTML.
    """
    start = start[:SNIFF_BYTES]
    if _PDF_START.match(start):
        return Kind.PDF
    if declared_kind(media_type) is Kind.PDF:
        media_type = ""  # then it is not one, and the bytes decide
    wide = start.startswith(_WIDE_BOMS) or charset.startswith("utf-16")
    text_start = start.removeprefix(codecs.BOM_UTF8)
    if not wide:
        if text_start.startswith(_BINARY_STARTS):
            return None
        binary = len(start) - len(start.translate(None, _BINARY_BYTES))
        # A stray control character happens in text; one in fifty does not.
        if b"\0\0" in start or binary * 50 > len(start):
            return None
    markup = bool(_HTML_START.match(text_start) or _XML_START.match(text_start))
    if media_type in _UNDECLARED:
        return Kind.HTML if markup else None
    kind = declared_kind(media_type)
    if media_type == "text/plain" and _HTML_START.match(text_start):
        return Kind.HTML
    return kind
