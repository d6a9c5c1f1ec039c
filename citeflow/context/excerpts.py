"""Which part of a page's text is shown under its source, and where in the text it stands."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from citeflow.context.untrusted import clean_layout

__all__ = ["RELEVANT", "START", "Excerpt", "choose_excerpts"]

START = "start"
"""The beginning of the text."""
RELEVANT = "relevant"
"""The passages that share most words with the topic; the beginning when none does."""

_SENTENCE = re.compile("[^\n]*?(?:[.!?](?=\\s)|[\u3002\uff01\uff1f]|(?=\n)|\\Z)[ \t]*\n?")
_WORD = re.compile(r"\w+")
# Shorter words (of, in, a) are in every passage. Ideographs carry meaning one by one.
_WORD_CHARS = 3
# A page's text is cut long before; this bounds what a caller's own text costs.
_SENTENCES = 2000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text` is characters `start` to `end` of the text whose UTF-8 has the SHA-256 `text_sha256`,
    so that anyone who has that text can see that the excerpt is verbatim."""

    text: str
    start: int
    end: int
    text_sha256: str


def choose_excerpts(content: str, chars: int, *, mode: str, topic: str) -> tuple[Excerpt, ...]:
    """The excerpts of a page's text, in its order, together at most `chars` characters.

    `content` without hidden characters and blank lines (as pages are read) is the text that the
    offsets are of. `mode` is `start` or `relevant`; none for a blank text or `chars` below 1.
    """
    text = clean_layout(content)
    if chars < 1 or not text:
        return ()
    spans = _relevant(text, chars, topic) if mode == RELEVANT else []
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    excerpts = []
    for start, end in spans or [(0, min(chars, len(text)))]:
        shown = text[start:end].strip()
        if shown:
            start = text.index(shown, start)
            excerpts.append(Excerpt(shown, start, start + len(shown), digest))
    return tuple(excerpts)


def _relevant(text: str, chars: int, topic: str) -> list[tuple[int, int]]:
    """Spans of whole sentences: those with the most words of the topic first, until it is full."""
    wanted = _terms(topic)
    spans = [m.span() for m in _SENTENCE.finditer(text) if m[0].strip()][:_SENTENCES]
    scores = [len(wanted & _terms(text[start:end])) for start, end in spans]
    best = sorted(
        (number for number in range(len(spans)) if scores[number]),
        key=lambda number: (-scores[number], number),
    )
    chosen: list[tuple[int, int]] = []
    left = chars
    for number in best:
        start, end = spans[number]
        if end - start > left:
            if chosen:
                continue
            end = start + left  # the best sentence is shown, if only its beginning
        chosen.append((start, end))
        left -= end - start
    return _joined(sorted(chosen))


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _terms(text: str) -> set[str]:
    words = _WORD.findall(text.casefold())
    return {word for word in words if len(word) >= _WORD_CHARS or not word.isascii()}
