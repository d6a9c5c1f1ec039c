"""A linear-time pass in front of the HTML parsers: bounds what they take more than linear time on.

Their worst cases are tags with tens of thousands of attributes, hundreds of thousands of
elements, and elements nested thousands deep. Ordinary pages come out unchanged.
"""

from __future__ import annotations

import functools
import re

from citeflow.fetch.limits import EXTRACT_LIMITS, ExtractLimits

__all__ = ["beginning", "guard"]

_OPEN_OR_CLOSE = re.compile(r"</?[a-zA-Z]")

_TAG_START = re.compile(r"<(/?)([a-zA-Z][^\s/>]{0,40})|<!--|<[!?]")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_MARKUP = re.compile(r"<[^<>]*>")
# Their content is not markup: a "<" in a script is less-than.
_RAW_TEXT = {
    name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in ("script", "style", "textarea")
}
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"}
    | {"source", "track", "wbr"}
)
# Drawings hold thousands of these written <path/>; for the elements of HTML the slash means
# nothing and the parsers leave them open.
_SELF_CLOSING = frozenset(
    {"animate", "circle", "ellipse", "image", "line", "path", "polygon", "polyline", "rect"}
    | {"stop", "use"}
)


def guard(html: str, limits: ExtractLimits = EXTRACT_LIMITS) -> str:
    """`html` within the limits: cut at `html_chars` characters and before tag number `tags`,
    without comments and single tags longer than `tag_chars` or with more than `attributes`, and
    without any markup at all when elements nest deeper than `depth`."""
    html = html[: limits.html_chars]
    if _is_ordinary(html, limits):
        return html
    kept: list[str] = []
    keep_from = position = count = depth = 0
    missing: set[str] = set()  # ends that do not occur any more: searched for once
    while (start := _TAG_START.search(html, position)) is not None:
        count += 1
        if count > limits.tags:
            html = html[: start.start()]
            break
        end = _end_of_tag(html, start, missing)
        if _is_too_long(html, start.start(), end, limits):
            kept.append(html[keep_from : start.start()])
            keep_from = position = end
            continue
        position = end
        name = (start[2] or "").lower()
        if not name or name in _VOID:
            continue
        if start[1]:
            depth = max(depth - 1, 0)
            continue
        if not (name in _SELF_CLOSING and html[end - 2 : end] == "/>"):
            depth += 1
        if depth > limits.depth:
            return _MARKUP.sub(" ", html)
        if name in _RAW_TEXT and name not in missing:
            close = _RAW_TEXT[name].search(html, end)
            if close is None:
                missing.add(name)
            else:
                position = close.start()
    kept.append(html[keep_from:])
    return "".join(kept)


def beginning(html: str, *, tags: int, chars: int) -> str:
    """`html` up to `chars` characters and before the "<" after `tags` others."""
    html = html[:chars]
    if html.count("<") <= tags:
        return html
    position = -1
    for _ in range(tags + 1):
        position = html.find("<", position + 1)
    return html[:position]


def _is_ordinary(html: str, limits: ExtractLimits) -> bool:
    """True when it is plain without looking closer that nothing is above a limit.

    What is counted here is never less than what the closer look counts.
    """
    if html.count("<") > limits.tags or "<!--" in html:
        return False
    for tag in _long_tag(limits.plain_tag_chars).finditer(html):
        if _is_too_long(html, *tag.span(), limits):
            return False
    depth = deepest = 0
    for tag in _OPEN_OR_CLOSE.findall(html):
        if tag[1] != "/":
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest <= limits.depth


@functools.cache
def _long_tag(chars: int) -> re.Pattern[str]:
    return re.compile(rf"<[^>]{{{chars},}}")


def _is_too_long(html: str, start: int, end: int, limits: ExtractLimits) -> bool:
    if end - start <= limits.plain_tag_chars:
        return False
    if end - start > limits.tag_chars:
        return True
    # What counts is the number of attributes; a long one alone (an inline image) is harmless.
    return len(_QUOTED.sub("", html[start:end]).split()) > limits.attributes


def _end_of_tag(html: str, start: re.Match[str], missing: set[str]) -> int:
    for opening, closing in (("<!--", "-->"), ("<", ">")):
        if html.startswith(opening, start.start()) and closing not in missing:
            found = html.find(closing, start.end())
            if found >= 0:
                return found + len(closing)
            missing.add(closing)
    return len(html)  # never closed: the parsers take the rest for attributes
