"""What is never text, taken out of the markup before any parser sees it.

Scripts, styles and drawings are a third of an ordinary page; every later step is quicker without
them. The pass is linear: each end that does not occur any more is searched for once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Pruned", "prune"]

_NAMES = ("script", "style", "svg", "noscript", "template", "iframe")
_START = re.compile(rf"<!--|<({'|'.join(_NAMES)})\b([^>]*)", re.IGNORECASE)
_END = {name: re.compile(rf"</{name}\b[^>]{{0,200}}>?", re.IGNORECASE) for name in _NAMES}
# Real pages have a few blocks of some kilobytes; more are not looked at.
_DATA_BLOCKS = 20
_DATA_CHARS = 200_000
# trafilatura reads the posts of a page that says so, and takes them for comments otherwise.
_FORUM = "DiscussionForumPosting"


class Pruned(NamedTuple):
    """The markup that is left, the JSON-LD blocks, and what stood in noscript elements."""

    html: str
    data_blocks: tuple[str, ...]
    noscript: str


def prune(html: str) -> Pruned:
    """`html` without comments, scripts, styles, drawings, templates and inline frames.

    An element that is never closed is left to the parsers.
    """
    kept: list[str] = []
    data_blocks: list[str] = []
    noscript: list[str] = []
    keep_from = position = 0
    missing: set[str] = set()
    while (start := _START.search(html, position)) is not None:
        name = (start[1] or "").lower()
        inner, end = _extent(html, start, name, missing)
        if end < 0:
            position = start.end()
            continue
        if name == "script" and "ld+json" in start[2].lower():
            block = html[start.end() + 1 : inner]
            if len(block) <= _DATA_CHARS and len(data_blocks) < _DATA_BLOCKS:
                data_blocks.append(block)
            if _FORUM in block:
                position = end
                continue
        elif name == "noscript":
            noscript.append(html[start.end() + 1 : min(inner, start.end() + _DATA_CHARS)])
        kept.append(html[keep_from : start.start()])
        keep_from = position = end
    kept.append(html[keep_from:])
    return Pruned("".join(kept), tuple(data_blocks), " ".join(noscript))


def _extent(html: str, start: re.Match[str], name: str, missing: set[str]) -> tuple[int, int]:
    """Where the content ends and where the element ends; -1 when it never does."""
    if name in missing:
        return -1, -1
    if not name:
        inner = html.find("-->", start.end())
        if inner >= 0:
            return inner, inner + len("-->")
    elif (close := _END[name].search(html, start.end())) is not None:
        return close.start(), close.end()
    missing.add(name)
    return -1, -1
