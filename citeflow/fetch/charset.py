"""From the bytes of a page to its text: which encoding it is in.

Headers and meta tags are wrong often enough that the bytes come first. In this order: a byte
order mark; UTF-8 where the bytes are UTF-8; what the header, the meta tag or the XML declaration
say, labels that are only a server's default last; statistical detection together with the
encodings usual for the page's language.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

__all__ = ["Decoded", "decode"]

# Where browsers look for a meta tag is the first kilobyte; pages put scripts in front of it.
_DECLARATION_BYTES = 4096
# A UTF-8 page with a foreign comment or a character cut in half has a few bad bytes; a page in
# another encoding has hardly a good one, since UTF-8 is hard to hit by accident.
_BAD_UTF8_SHARE = 0.02
# The same for the legacy encodings: a declared one is believed with a few bad bytes in it.
_BAD_LEGACY_SHARE = 0.01
# Share of non-ASCII letters above which a text is not in a western European language (French and
# Vietnamese-free European text has below 10 %), whatever a default label says.
_WESTERN_SHARE = 0.25
# Detection needs no more, and its time grows with what it gets.
_DETECT_BYTES = 131_072

_ASCII = bytes(range(0x80))
_LETTERS = bytes([*range(0x41, 0x5B), *range(0x61, 0x7B)])
_META = re.compile(rb"<meta\s[^>]{0,1000}?charset\s*=\s*[\"']?\s*([a-z0-9_.:-]{2,40})", re.I)
_XML_DECLARATION = re.compile(
    rb"\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([a-z0-9_.:-]{2,40})", re.I
)
_HTML_LANG = re.compile(rb"<html\s[^>]{0,1000}?\blang\s*=\s*[\"']?([a-z]{2,3})", re.I)
_MARKUP = re.compile(rb"<[^<>]*>")
_ISO_2022_SHIFT = re.compile(rb"\x1b[$(]")

# As browsers read them: each label means the largest encoding that contains the one it names.
_WIDENED = {
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-11": "cp874",
    "big5": "big5hkscs",
}
_DEFAULT_LABELS = frozenset({"cp1252", "utf-8"})
_USUAL = {
    "ja": ("cp932", "euc_jp"),
    "zh": ("gb18030", "big5hkscs"),
    "ko": ("cp949",),
    "ru": ("cp1251", "koi8-r"),
    "uk": ("cp1251", "koi8-u"),
    "bg": ("cp1251",),
    "be": ("cp1251",),
    "mk": ("cp1251",),
    "sr": ("cp1250", "cp1251"),
    "el": ("cp1253",),
    "tr": ("cp1254",),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "fa": ("cp1256",),
    "th": ("cp874",),
    "pl": ("iso8859-2", "cp1250"),
    "cs": ("cp1250", "iso8859-2"),
    "sk": ("cp1250", "iso8859-2"),
    "hu": ("iso8859-2", "cp1250"),
    "sl": ("cp1250", "iso8859-2"),
    "hr": ("cp1250", "iso8859-2"),
    "ro": ("iso8859-2", "cp1250"),
    "lt": ("cp1257",),
    "lv": ("cp1257",),
    "et": ("cp1257",),
    "vi": ("cp1258",),
}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Decoded(NamedTuple):
    """The text, and the Python name of the encoding it was read in."""

    text: str
    charset: str


def decode(data: bytes, header_charset: str = "") -> Decoded:
    """Decode a page. `header_charset` is the one of the Content-Type header, blank if none.

    Never fails: bytes that fit no encoding become U+FFFD.
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            return Decoded(data[len(bom) :].decode(name, "replace"), name)
    start = data[:_DECLARATION_BYTES]
    labels = [_known(header_charset), *(_declared(p, start) for p in (_META, _XML_DECLARATION))]
    declared = [label for label in labels if label]
    if header_charset.startswith("utf-16"):
        # Only the header can say so: a meta tag that can be read is not in UTF-16.
        text = data.decode(declared[0] if declared else "utf-16-le", "replace")
        return Decoded(text, declared[0] if declared else "utf-16-le")
    if "iso2022_jp" in declared and _ISO_2022_SHIFT.search(data):
        return Decoded(data.decode("iso2022_jp", "replace"), "iso2022_jp")
    high = len(data.translate(None, _ASCII))
    text = data.decode("utf-8", "replace")
    if not high or _bad(text, data) < _BAD_UTF8_SHARE * high:
        return Decoded(text, "utf-8")
    for name in declared:
        if name not in _DEFAULT_LABELS and (fitting := _fits(data, name, high)) is not None:
            return Decoded(fitting, name)
    if "cp1252" in declared and _may_be_western(data):
        fitting = _fits(data, "cp1252", high)
        if fitting is not None:
            return Decoded(fitting, "cp1252")
    return _detected(data, start, high)


def _known(label: str) -> str:
    """The encoding a label names, as browsers know them; blank for others.

    Python's own look-up is not asked: it also knows codecs that are not encodings.
    """
    name = map_encoding_to_html5(label, fallback_utf8=False) if label else None
    return _WIDENED.get(name, name) if name else ""


def _declared(pattern: re.Pattern[bytes], start: bytes) -> str:
    found = pattern.search(start) if pattern is _META else pattern.match(start)
    name = _known(found.group(1).decode("ascii")) if found else ""
    return "" if name.startswith("utf-16") else name


def _bad(text: str, data: bytes) -> int:
    return text.count("\ufffd") - data.count(b"\xef\xbf\xbd")


def _fits(data: bytes, name: str, high: int) -> str | None:
    text = data.decode(name, "replace")
    return text if text.count("\ufffd") <= _BAD_LEGACY_SHARE * high else None


def _may_be_western(data: bytes) -> bool:
    text = _MARKUP.sub(b" ", data[:_DETECT_BYTES])
    high = len(text.translate(None, _ASCII))
    letters = len(text) - len(text.translate(None, _LETTERS))
    return high <= _WESTERN_SHARE * (high + letters)


def _detected(data: bytes, start: bytes, high: int) -> Decoded:
    guess = detect_encoding(data, max_len=_DETECT_BYTES) or "utf-8"
    guess = _WIDENED.get(guess, guess)
    language = _HTML_LANG.search(start)
    usual = _USUAL.get(language.group(1).decode("ascii").lower()[:2], ()) if language else ()
    candidates = (guess, *usual) if guess in usual or not usual else (*usual, guess)
    for name in candidates:
        if name != "utf-8" and (text := _fits(data, name, high)) is not None:
            return Decoded(text, name)
    return Decoded(data.decode("cp1252", "replace"), "cp1252")
