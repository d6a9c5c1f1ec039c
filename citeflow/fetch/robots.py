"""robots.txt (RFC 9309): what a site asks programs not to read."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Robots", "parse_robots"]

# RFC 9309, 2.5: at least 500 kB must be read; more lines than this in it are not rules.
_MAX_LINES = 20_000
_LINE = re.compile(r"\s*([a-zA-Z-]{1,40})\s*:([^#\r\n]*)")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class _Rule(NamedTuple):
    allow: bool
    pattern: str


class Robots(NamedTuple):
    """The rules of a site for one reader, empty when there are none."""

    rules: tuple[_Rule, ...]

    def allows(self, path: str) -> bool:
        """True when `path` (with its query) may be read: the longest rule that matches decides,
        of two equally long ones the one that allows."""
        path = _normal(path) or "/"
        if path == "/robots.txt":
            return True
        best: _Rule | None = None
        for rule in self.rules:
            longer = best is None or (len(rule.pattern), rule.allow) > (
                len(best.pattern),
                best.allow,
            )
            if longer and _matches(rule.pattern, path):
                best = rule
        return best is None or best.allow


def parse_robots(text: str, product: str) -> Robots:
    """The rules of `text` for the reader whose product token is `product`; those for everybody
    when none name it. Lines that are not understood are left out."""
    groups: dict[str, list[_Rule]] = {}
    agents: list[str] = []
    rules_begun = False
    for line in text.removeprefix("\ufeff").splitlines()[:_MAX_LINES]:
        found = _LINE.match(line)
        if found is None:
            continue
        field, value = found[1].lower(), found[2].strip()
        if field == "user-agent":
            if rules_begun:
                agents, rules_begun = [], False
            agents.append(value.lower())
            groups.setdefault(value.lower(), [])
        elif field in ("allow", "disallow"):
            rules_begun = True
            if value:
                for agent in agents:
                    groups[agent].append(_Rule(field == "allow", _normal(value)))
    return Robots(tuple(groups.get(product.lower(), groups.get("*", []))))


def _normal(path: str) -> str:
    """`path` with its escapes as RFC 3986 prefers them, so that equal paths are equal texts."""

    def unescape(found: re.Match[str]) -> str:
        char = chr(int(found[1], 16))
        return char if char in _UNRESERVED else found[0].upper()

    escaped = "".join(
        char
        if "!" <= char <= "~"
        else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
        for char in path
    )
    return _ESCAPE.sub(unescape, escaped)


def _matches(pattern: str, path: str) -> bool:
    """`*` stands for anything, a final `$` for the end. Linear: each piece is searched once, from
    where the one before ended."""
    anchored = pattern.endswith("$")
    pieces = (pattern[:-1] if anchored else pattern).split("*")
    if not path.startswith(pieces[0]):
        return False
    position = len(pieces[0])
    for number, piece in enumerate(pieces[1:], 1):
        if anchored and number == len(pieces) - 1:
            return path.endswith(piece) and len(path) - len(piece) >= position
        found = path.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    return not anchored or position == len(path)
