"""Whether two readings of a page say the same."""

from __future__ import annotations

import re
from collections import Counter

from citeflow.fetch.first_pass import Frame

__all__ = ["agree", "resembles"]

_WORD = re.compile(r"\w+")
# Shorter texts agree by chance.
_TRUSTED_CHARS = 500
# Shares of words, and of text in long lines, by which the two readings may differ.
_AGREEMENT = 0.85
_ONE_SIDED = 0.1
_LONG_LINE_CHARS = 80


def agree(frame: Frame, other: str) -> bool:
    """True when the frame reader's text can be trusted, `other` being another reader's."""
    text = frame.text
    if frame.listing or len(text) < _TRUSTED_CHARS:
        return False
    ours, theirs = Counter(_WORD.findall(text)), Counter(_WORD.findall(other))
    common = (ours & theirs).total()
    if 2 * common < _AGREEMENT * (ours.total() + theirs.total()):
        return False
    allowed = _ONE_SIDED * len(text)
    return _only_in(other, text) <= allowed and _only_in(text, other) <= allowed


def resembles(text: str, other: str) -> bool:
    """True when the two have at least half of their words in common."""
    ours, theirs = Counter(_WORD.findall(text)), Counter(_WORD.findall(other))
    return 4 * (ours & theirs).total() >= ours.total() + theirs.total() > 0


def _only_in(text: str, other: str) -> int:
    """Characters in the long lines of `text` whose words `other` does not have in a row."""
    squeezed = _squeezed(other)
    lines = (line for line in text.split("\n") if len(line) >= _LONG_LINE_CHARS)
    return sum(len(line) for line in lines if _squeezed(line) not in squeezed)


def _squeezed(text: str) -> str:
    return "".join(_WORD.findall(text))
