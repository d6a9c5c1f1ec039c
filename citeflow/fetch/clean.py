"""Text as it may leave this package: readable characters, one paragraph a line, bounded."""

from __future__ import annotations

import itertools
import re

from citeflow.fetch.limits import EXTRACT_LIMITS

__all__ = [
    "clean_layout",
    "clean_line",
    "clean_text",
    "cut",
    "has_words",
    "is_unreadable",
    "without_surrogates",
]

_LINE_ENDS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# What is not shown, or changes how other text is shown: control characters, bidirectional
# overrides, embeddings, isolates and marks, deprecated format characters, invisible spaces and
# operators, the tag characters that can smuggle hidden text, noncharacters, lone surrogates.
# The joiners U+200C and U+200D stay: several scripts and emoji are spelled with them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f\ud800-\udfff]"
)
_SPACES = re.compile(r"[^\S\n]+")
_SPACE = re.compile(r"\s")
_TAB = 4
# Ten levels of code. More is a way to fill a text with nothing.
_INDENT = 40
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """`text` without NUL and lone surrogates, which native parsers refuse."""
    try:
        text.encode()  # a tenth of the time of looking for them
    except UnicodeEncodeError:
        text = _SURROGATES.sub("", text)
    return text.replace("\0", "")


def is_unreadable(text: str) -> bool:
    """True when more than a hundredth of `text` is replacement or control characters."""
    return len(_UNREADABLE.findall(text)) > EXTRACT_LIMITS.unreadable_share * len(text)


def clean_text(text: str) -> str:
    """`text` without hidden characters, its white space collapsed, without blank lines."""
    text = _SPACES.sub(" ", _HIDDEN.sub("", _LINE_ENDS.sub("\n", text)))
    return "\n".join(line for part in text.split("\n") if (line := part.strip()))


def clean_layout(text: str, *, within: bool = False) -> str:
    """As `clean_text`, but lines keep their indentation as spaces (40 at most, a tab counts as 4),
    all but the first; with `within` also the spaces and tabs inside them, as spaces."""
    lines = []
    for part in _HIDDEN.sub("", _LINE_ENDS.sub("\n", text)).split("\n"):
        line = part.strip()
        if not line:
            continue
        line = _SPACE.sub(" ", line.expandtabs(_TAB)) if within else _SPACES.sub(" ", line)
        if part[0] != line[0]:
            spaces = part[: len(part) - len(part.lstrip())].expandtabs(_TAB)
            line = " " * min(len(spaces), _INDENT) + line
        lines.append(line)
    return "\n".join(lines).lstrip()


def clean_line(text: str) -> str:
    """`clean_text` on one line."""
    return clean_text(text).replace("\n", " ")


def has_words(text: str) -> bool:
    """True when `text` has enough letters and digits to be the text of a page."""
    counted = itertools.islice(filter(str.isalnum, text), EXTRACT_LIMITS.word_chars)
    return sum(1 for _ in counted) == EXTRACT_LIMITS.word_chars


def cut(text: str, max_chars: int) -> str:
    """At most `max_chars` code points of `text`, without white space at the cut."""
    return text if len(text) <= max_chars else text[:max_chars].rstrip()
