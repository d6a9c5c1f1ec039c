"""Words and terms of a text, also where words are not separated by spaces.

Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without spaces; there a run of
characters stands for words of about two characters each.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Terms", "comparison_words", "count_words", "text_width"]

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3040-\u30ff"  # Hiragana, Katakana
    "\u31f0-\u31ff\uff66-\uff9d"  # Katakana extensions, half width
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"  # Han, supplementary planes
)
_UNSPACED_CHAR = re.compile(f"[{_UNSPACED}]")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_SPLIT_UNSPACED = re.compile(f"[{_UNSPACED}]|[^{_UNSPACED}]+")
_LONG_WORD = re.compile(r"\w{4,}")
# Names too short to be told from filler words by length: GPU, AWS, AI, S3, C++, C#.
_SHORT_NAME = re.compile(r"(?<!\w)(?:[A-Z][A-Z0-9]{1,2}|[A-Z]\d|[A-Z](?:\+\+|#))(?![\w+#])")
_NAME = re.compile(r"\w+[+#]*")

_WIDE = frozenset({"W", "F"})


def text_width(text: str) -> int:
    """Length in columns: a wide (East Asian) character says about as much as two narrow ones."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in _WIDE else 1 for char in text)


def count_words(text: str) -> int:
    """Words separated by white space; in unspaced scripts one per two characters."""
    if text.isascii():
        return len(text.split())
    total = 0
    for token in text.split():
        unspaced = len(_UNSPACED_CHAR.findall(token))
        total += (unspaced + 1) // 2 if unspaced else 1
    return total


def comparison_words(text: str) -> list[str]:
    """The lower-case words two texts are compared by, punctuation attached.

    Unspaced scripts are compared character by character.
    """
    return list(_comparison_words(text))


def _comparison_words(text: str) -> Iterator[str]:
    if text.isascii():
        yield from text.lower().split()
        return
    for token in text.lower().split():
        if _UNSPACED_CHAR.search(token):
            yield from _SPLIT_UNSPACED.findall(token)
        else:
            yield token


class Terms:
    """The significant terms of a query: words of four or more characters, and short names.

    A short name is written in capitals in a query that is not all capitals (`GPU`, `C++`). Runs
    of unspaced script become pairs of neighbouring characters. Terms are distinct, in the order
    of the query, and are matched as whole words, without stemming and whatever the case.
    """

    def __init__(self, query: str | None) -> None:
        text = query or ""
        spaced = _UNSPACED_RUN.sub(" ", text)
        found: dict[tuple[int, str], None] = {}
        for match in _LONG_WORD.finditer(spaced):
            found[(match.start(), match.group().lower())] = None
        if any(char.islower() for char in spaced):
            for match in _SHORT_NAME.finditer(spaced):
                found[(match.start(), match.group().lower())] = None
        self.words: tuple[str, ...] = tuple(dict.fromkeys(word for _, word in sorted(found)))
        pairs: dict[str, None] = {}
        for run in _UNSPACED_RUN.findall(text):
            pairs.update(dict.fromkeys(run[i : i + 2] for i in range(max(1, len(run) - 1))))
        self.pairs: tuple[str, ...] = tuple(pairs)

    def __len__(self) -> int:
        return len(self.words) + len(self.pairs)

    def matched(self, text: str) -> int:
        """How many of the terms `text` contains."""
        lowered = text.lower()
        names = set(_NAME.findall(lowered))
        names |= {name.rstrip("+#") for name in names}
        words = sum(word in names for word in self.words)
        return words + sum(pair in lowered for pair in self.pairs)
