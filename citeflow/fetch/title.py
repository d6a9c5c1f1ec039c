"""The title of a page, and the title lines that extractors leave at the head of its text."""

from __future__ import annotations

import re

from rapidfuzz import fuzz
from selectolax.lexbor import LexborHTMLParser

from citeflow.fetch.clean import clean_line

__all__ = ["Titles", "find_titles", "without_title_lines"]

# A title is a sentence; what is longer is a page that puts its text there.
_MAX_TITLE_CHARS = 300
# A title, its subtitle and a kicker that repeats it; a fourth equal line would be text.
_MAX_TITLE_LINES = 3
# Percent; lets pass a changed quotation mark or site name, not another sentence.
_SAME_TITLE = 85.0
_SITE_SUFFIX = re.compile(
    "\\s+[|\u2013\u2014\u00b7\u00bb:-]\\s+[^|\u2013\u2014\u00b7\u00bb]{1,40}\\Z"
)
_OG_TITLE = 'meta[property="og:title"], meta[name="og:title"]'


class Titles(tuple[str, ...]):
    """The title candidates of a page, best first; may be empty."""

    __slots__ = ()

    @property
    def best(self) -> str:
        """The page's title, blank if it has none."""
        return self[0] if self else ""


def find_titles(tree: LexborHTMLParser) -> Titles:
    """The h1 that also occurs in the document's title, else that title without the site name."""
    og = tree.css_first(_OG_TITLE)
    og_title = _short(og.attributes.get("content") if og is not None else "")
    node = tree.css_first("title")
    document = _short(node.text() if node is not None else "")
    headings = [_short(h1.text(separator=" ")) for h1 in tree.css("h1")[:5]]
    context = f"{og_title}\n{document}".lower()
    shared = [heading for heading in headings if heading and heading.lower() in context]
    shared.sort(key=len, reverse=True)  # a logo in an h1 is in the title too, and shorter
    stripped = _SITE_SUFFIX.sub("", og_title or document)
    found = [*shared, stripped, og_title, document, *headings]
    return Titles(dict.fromkeys(title for title in found if title))


def without_title_lines(text: str, titles: Titles) -> str:
    """`text` without leading lines that only repeat the title. Text that is nothing else stays."""
    lines = text.split("\n")
    for dropped in range(min(_MAX_TITLE_LINES, len(lines) - 1)):
        if not any(_same(lines[dropped], title) for title in titles):
            return "\n".join(lines[dropped:])
    return "\n".join(lines[min(_MAX_TITLE_LINES, len(lines) - 1) :])


def _short(text: str | None) -> str:
    return clean_line((text or "")[: 4 * _MAX_TITLE_CHARS])[:_MAX_TITLE_CHARS]


def _same(line: str, title: str) -> bool:
    if len(line) > 2 * _MAX_TITLE_CHARS:
        return False
    return fuzz.ratio(line.lower(), title.lower()) >= _SAME_TITLE
