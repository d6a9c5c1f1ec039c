"""Recognising the fixed lines of a corpus in disguise.

Other case, spacing, punctuation between the letters, full-width or decorated letters, accents,
and the common look-alikes of Greek, Cyrillic and digits all read as the same words. Texts are
compared by their skeleton: look-alikes replaced, nothing but letters and digits kept.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from citeflow.context.headings import (
    INTERNAL_HEADING,
    REFERENCES_HEADING,
    RESEARCH_RENDER_SENTINEL,
    SOURCE_TEXT,
    WEB_HEADING,
)

__all__ = ["defuse_sentinel", "names_fixed_line", "spells_sentinel"]

# After lower-casing, so that a capital look-alike is found by its small form (Greek capital nu
# looks like N). Pairs of a character and what it is read as.
_PAIRS = (
    "\u0430a \u03b1a \u0251a 4a \u1d00a \u13aaa "
    "\u0441c \u03f2c \u1d04c \u13dfc "
    "\u0501d \u1d05d \u13a0d "
    "\u0435e \u03b5e 3e \u1d07e \u13ace "
    "\u0261g \u0262g \u0581g \u050dg \u13c0g "
    "\u0456i \u03b9i \u0131i \u0269i \u026ai \u04cfi \u13a5i 1i li |i "
    "\u03bdn \u03b7n \u0578n \u0274n \u043fn "
    "\u043eo \u03bfo \u0585o \u1d0fo 0o "
    "\u0442t \u03c4t \u1d1bt \u13a2t "
    "\u057du \u03c5u \u1d1cu \u028bu "
    "\u0455s \u0440p \u03c1p \u0445x \u0443y \u0432b \u043ak \u03bak \u043cm \u043dh \u0433r"
)
_READ_AS = {pair[0]: pair[1] for pair in _PAIRS.split()}

# Letters in boxes and circles that Unicode does not decompose: regional indicators, negative
# circled and negative squared capitals.
_BOXED_STARTS = (0x1F1E6, 0x1F150, 0x1F170)
for _start in _BOXED_STARTS:
    _READ_AS.update({chr(_start + i): _READ_AS.get(chr(97 + i), chr(97 + i)) for i in range(26)})

_COLONS = frozenset(
    ":\uff1a\ufe55\ufe13\u2236\ua789\u02d0\u02f8\u05c3\u0589\u205a\u0703\u0704\u1803\u16ec"
)


@functools.lru_cache(maxsize=4096)
def _letters(char: str) -> str:
    if char.isascii():
        folded = char.lower()
    else:
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    read = "".join(_READ_AS.get(letter, letter) for letter in folded)
    return "".join(letter for letter in read if letter.isalnum())


class _SkeletonTable(dict[int, str]):
    """A table for `str.translate` that fills itself with what is seen."""

    def __missing__(self, code: int) -> str:
        letters = _letters(chr(code))
        if len(self) < _MAX_TABLE:
            self[code] = letters
        return letters


# More characters than any page uses; a hostile one of all Unicode must not fill the memory.
_MAX_TABLE = 20_000
_TABLE = _SkeletonTable()


def _skeleton(text: str) -> str:
    return text.translate(_TABLE)


def _origins(text: str) -> list[int]:
    """For each character of the skeleton the index in `text` it comes from."""
    return [index for index, char in enumerate(text) for _ in _letters(char)]


_SENTINEL = _skeleton(RESEARCH_RENDER_SENTINEL)
_FIXED_LINES = tuple(
    _skeleton(re.sub(r"\(.*", "", line))
    for line in (
        REFERENCES_HEADING,
        INTERNAL_HEADING,
        WEB_HEADING,
        RESEARCH_RENDER_SENTINEL,
        SOURCE_TEXT,
    )
)


def spells_sentinel(text: str) -> bool:
    """True when `text` holds the words of the sentinel, in whatever disguise."""
    return _SENTINEL in _skeleton(text)


def defuse_sentinel(text: str) -> str:
    """`text` with a hyphen for the colon wherever it spells the sentinel, in whatever disguise."""
    skeleton = _skeleton(text)
    start = skeleton.find(_SENTINEL)
    if start < 0:
        return text
    origins = _origins(text)
    colons: set[int] = set()
    while start >= 0:
        index = origins[start + len(_SENTINEL) - 1] + 1
        while index < len(text) and not _letters(text[index]):
            if text[index] in _COLONS:
                colons.add(index)
            index += 1
        start = skeleton.find(_SENTINEL, start + 1)
    if not colons:
        return text
    return "".join(" -" if index in colons else char for index, char in enumerate(text))


_LEADING_MARKS = re.compile(r"[\W\d_]+")


def names_fixed_line(line: str) -> bool:
    """True when `line` begins like one of the fixed lines of a corpus, in whatever disguise.

    Marks and numbers in front ("1. ", "| ") do not count, unless they stand for a letter.
    """
    bare = _LEADING_MARKS.sub("", line, count=1) if _LEADING_MARKS.match(line) else line
    return any(_skeleton(text).startswith(_FIXED_LINES) for text in {line, bare})
