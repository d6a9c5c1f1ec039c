"""A cheap reading of a page, and whether it may be trusted.

Two unlike extractors read the page in a tenth of the time of the thorough one: resiliparse, and
the frame reader below (the smallest element that holds most of the page's paragraphs, without
what its markup calls something else). Where they say the same, the frame reader's text is as
good as the thorough one's or better; where they do not, neither is taken.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from resiliparse.extract.html2text import extract_plain_text
from selectolax.lexbor import LexborHTMLParser, LexborNode

from citeflow.fetch.asides import named_shares

__all__ = ["Frame", "by_resiliparse", "read_frame"]

# What a page's own markup says is not its text, whatever is in it.
_NOT_TEXT = (
    "nav, aside, footer, button, select, textarea, object, embed, canvas, menu, dialog, "
    "figcaption, video, audio, form, script, style, noscript, template, svg, iframe, [hidden], "
    "[aria-hidden=true], [role=navigation], [role=complementary], [role=dialog], [role=banner], "
    "[role=contentinfo], [style*='display:none'], [style*='display: none']"
)
# From this share of the page's paragraphs, that markup is a mistake.
_NOT_TEXT_SHARE = 0.35
_BLOCK_NAMES = (
    "address article blockquote body br center dd details div dl dt fieldset figure form h1 h2 h3 "
    "h4 h5 h6 header hgroup hr li main ol p pre section summary table tbody td th thead tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
# Share of link text from which an element is a menu; a sentence may be one link, a list not.
_MENU_SHARES = {"ul": 0.6, "ol": 0.6, "li": 0.6, "table": 0.6} | dict.fromkeys(
    ("div", "section", "p", "h2", "h3", "h4"), 0.8
)
_PARAGRAPHS = "p, pre, blockquote, li, td, dd"
# With less in paragraphs, the text is elsewhere.
_FEW_CHARS = 500
_DIVISIONS = "div, section, article, main, center, font, span"
_PARAGRAPH_CHARS = 60
_LINK_SHARE = 0.4
# A row with one of these in it, or with as much text in a cell, is not data but the layout of an
# old page.
_IN_LAYOUT_ROWS = "table, ul, ol, pre, h1, h2, h3, h4, blockquote"
_CELL_CHARS = 200
# The frame is the smallest element with this share of the paragraphs; the rest are strays.
_FRAME_SHARE = 0.75
# The work grows with both, and the interpreter's stack with the depth: what is above either is
# left to the thorough extractor. Of 79 real pages none has paragraphs nested deeper than 60.
_DEPTH = 200
_MAX_PARAGRAPHS = 5_000
# A few words in one of these are meant to be read; elsewhere they are a label or a button.
_SHORT = frozenset({"p", "li", "td", "th", "dt", "dd", *_HEADINGS})
_LABEL_CHARS = 30
_SENTENCE_END = re.compile("[.!?:;,\u2026\u3002\uff01\uff1f\"'\u201d\u2019\u00bb)\\]]\\s*\\Z")

# A page with as many headings that are links is a list of articles, not one.
_LISTING_HEADINGS = 3
_HEADING_LINK_CHARS = 15


class Frame(NamedTuple):
    """What the frame reader found, and whether the page looks like a list of articles."""

    text: str
    listing: bool


_NO_FRAME = Frame("", listing=False)


def by_resiliparse(html: str) -> str:
    """The main text by resiliparse, without its ornaments."""
    text = extract_plain_text(
        html,
        main_content=True,
        alt_texts=False,
        comments=False,
        post_meta=False,
        list_bullets=False,
    )
    return str(text)


def read_frame(tree: LexborHTMLParser) -> Frame:
    """The text of the smallest element that holds most of the page's paragraphs, block by line.

    Blank for a page without paragraphs, and for one too deep or too long for a cheap reading.
    """
    body = tree.body
    if body is None:
        return _NO_FRAME
    try:
        reader = _Reader(tree, body)
        root = reader.frame()
        if root is None:
            return _NO_FRAME
        reader.read(root, 0)
    except _TooMuchError:
        return _NO_FRAME
    reader.end_line(short=False)
    return Frame("\n".join(_trimmed(reader.lines)), reader.linked_headings >= _LISTING_HEADINGS)


class _TooMuchError(Exception):
    """The page is too deep or too long for this reader."""


class _Reader:
    """One page being read. Elements are known by their address in the parser's memory."""

    def __init__(self, tree: LexborHTMLParser, body: LexborNode) -> None:
        self._body = body
        self.lines: list[str] = []
        self.linked_headings = 0
        self._line: list[str] = []
        self._chains: dict[int, tuple[int, ...]] = {}
        self._link_chars: defaultdict[int, int] = defaultdict(int)
        for link in tree.css("a"):
            length = len(link.text(deep=True).strip())
            for element in self._chain(link.parent):
                self._link_chars[element] += length
        self._paragraphs: list[tuple[float, tuple[int, ...]]] = []
        weights: defaultdict[int, float] = defaultdict(float)
        for node, weight in self._text_nodes(tree):
            chain = self._chain(node)
            self._paragraphs.append((weight, chain))
            if len(self._paragraphs) > _MAX_PARAGRAPHS:
                raise _TooMuchError
            for element in chain:
                weights[element] += weight
        total = sum(weight for weight, _ in self._paragraphs)
        shares = {node.mem_id: _NOT_TEXT_SHARE for node in tree.css(_NOT_TEXT)}
        named = body.css("[class], [id]")
        for number, share in named_shares([node.attributes for node in named]).items():
            element = named[number].mem_id
            shares[element] = max(share, shares.get(element, 0.0))
        self._dropped = {
            element
            for element, share in shares.items()
            if weights.get(element, 0.0) < share * total
        }
        self._dropped.discard(body.mem_id)

    def _text_nodes(self, tree: LexborHTMLParser) -> Iterator[tuple[LexborNode, float]]:
        total = 0
        for node in tree.css(_PARAGRAPHS):
            length = len(node.text(deep=True).strip())
            links = self._link_chars.get(node.mem_id, 0)
            if length >= _PARAGRAPH_CHARS and links <= _LINK_SHARE * length:
                total += length
                # Cells and items nest, and are more often something else than paragraphs are.
                yield node, length if node.tag == "p" else length / 2
        if total < _FEW_CHARS:
            # Pages that part their text by line breaks or plain divisions.
            for node in tree.css(_DIVISIONS):
                length = len(node.text(deep=False).strip())
                if length >= _PARAGRAPH_CHARS:
                    yield node, length

    def _chain(self, node: LexborNode | None) -> tuple[int, ...]:
        """The addresses of an element and of all it is in, from the inside out."""
        missing: list[int] = []
        while node is not None and node.mem_id not in self._chains:
            missing.append(node.mem_id)
            if len(missing) > _DEPTH:
                raise _TooMuchError
            node = node.parent
        chain = self._chains[node.mem_id] if node is not None else ()
        for element in reversed(missing):
            chain = (element, *chain)
            self._chains[element] = chain
        if len(chain) > _DEPTH:
            raise _TooMuchError
        return chain

    def frame(self) -> LexborNode | None:
        """The frame, None when the page has no paragraphs."""
        weights: defaultdict[int, float] = defaultdict(float)
        total = 0.0
        for weight, chain in self._paragraphs:
            if self._dropped.isdisjoint(chain):
                total += weight
                for element in chain:
                    weights[element] += weight
        if not total:
            return None
        root: LexborNode | None = self._body
        frame = self._body
        while root is not None:
            frame = root
            root = next(
                (c for c in frame.iter() if weights.get(c.mem_id, 0.0) >= _FRAME_SHARE * total),
                None,
            )
        return frame

    def read(self, node: LexborNode, depth: int) -> None:
        """Append the lines of an element."""
        if depth > _DEPTH:
            raise _TooMuchError
        for child in node.iter(include_text=True):
            tag = child.tag or ""
            if tag == "-text":
                self._line.append(child.text() or "")
            elif tag in _BLOCKS:
                self.end_line(short=False)
                if child.mem_id in self._dropped:
                    continue
                if tag in _HEADINGS and self._link_chars.get(child.mem_id, 0) > _HEADING_LINK_CHARS:
                    self.linked_headings += 1
                if not self._is_menu(child, tag):
                    self._read_block(child, tag, depth)
            elif tag[:1].isalpha() and child.mem_id not in self._dropped:
                self.read(child, depth + 1)

    def _read_block(self, node: LexborNode, tag: str, depth: int) -> None:
        if tag == "pre":
            self.lines.append(self._parted(node, "\n", depth).strip("\n"))
            return
        if tag == "tr" and node.css_first(_IN_LAYOUT_ROWS) is None:
            found = node.css("td, th")
            cells = [" ".join(self._parted(cell, " ", depth).split()) for cell in found]
            short = all(len(cell) <= _CELL_CHARS for cell in cells)
            if cells and (short or node.css_first("p, div") is None):
                self.lines.append(" | ".join(cells).strip())
                return
        self.read(node, depth + 1)
        self.end_line(short=tag in _SHORT)

    def _parted(self, node: LexborNode, by: str, depth: int) -> str:
        """The text of an element as it stands, its blocks and line breaks parted by `by`."""
        if depth > _DEPTH:
            raise _TooMuchError
        parts: list[str] = []
        for child in node.iter(include_text=True):
            tag = child.tag or ""
            if tag == "-text":
                parts.append(child.text() or "")
            elif tag == "br":
                parts.append(by)
            elif tag[:1].isalpha() and child.mem_id not in self._dropped:
                text = self._parted(child, by, depth + 1)
                if tag not in _BLOCKS:
                    parts.append(text)
                    continue
                # A newline at the end of one block already parts it from the next.
                before = "" if not parts or parts[-1].endswith(by) else by
                parts.append(f"{before}{text.removesuffix(by)}{by}")
        return "".join(parts)

    def _is_menu(self, node: LexborNode, tag: str) -> bool:
        share, links = _MENU_SHARES.get(tag), self._link_chars.get(node.mem_id, 0)
        return bool(share and links) and links > (share or 0) * len(node.text(deep=True).strip())

    def end_line(self, *, short: bool) -> None:
        """End the line being read; `short`: it may be a few words."""
        text = " ".join("".join(self._line).split())
        self._line.clear()
        if text and (short or len(text) >= _LABEL_CHARS or _SENTENCE_END.search(text)):
            self.lines.append(text)


def _trimmed(lines: list[str]) -> list[str]:
    """The lines without short ones at both ends, which are bylines, credits and headings."""

    def is_text(line: str) -> bool:
        return len(line) >= _PARAGRAPH_CHARS or (
            len(line) > _PARAGRAPH_CHARS / 3 and bool(_SENTENCE_END.search(line))
        )

    good = [number for number, line in enumerate(lines) if is_text(line)]
    return lines[good[0] : good[-1] + 1] if good else []
