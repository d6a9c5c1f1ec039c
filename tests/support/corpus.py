"""A strict parser of rendered corpora, independent of the renderer."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

REFERENCES = "VERIFIED REFERENCE LINKS (use these as citations):"
POSTS = "EXISTING POSTS ON OUR SITE (link to these where relevant):"
WEB = "RECENT WEB SOURCES (cite if relevant):"
SENTINEL = "CITATION GUIDANCE:"
HEADINGS = (REFERENCES, POSTS, WEB, SENTINEL)

_ITEM = re.compile(
    r"- \[(?P<title>(?:[^\[\]\\`\n]|\\.|\\(?=[A-Za-z0-9 ]))+)\]"
    r"\((?P<url>[^()\[\]\s<>]+)\)(?P<rest>.*)"
)
_LIVE_LINK = re.compile(r"(?<!\\)(?:\\\\)*\][\[(:]")
_BLOCK = re.compile(
    r"[-+*](?:[ \[]|$)|#{1,6}(?: |$)|>|```|~~~|\||\d{1,9}[.)](?: |$)|[=-]+$|"
    r"([*_-])[ ]*(?:\1[ ]*){2,}$|<[A-Za-z/!?]"
)
_FORBIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


@dataclass
class Corpus:
    """Links by heading, and the excerpts of the web section by link."""

    links: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    excerpts: dict[str, list[str]] = field(default_factory=dict)


def parse_corpus(text: str) -> Corpus:
    """Parse `text`, raising AssertionError where it is not a well-formed corpus."""
    corpus = Corpus()
    if not text:
        return corpus
    assert not text.endswith("\n")
    for char in text.replace("\n", ""):
        assert unicodedata.category(char) not in _FORBIDDEN, hex(ord(char))
    sections = [section.split("\n") for section in text.split("\n\n")]
    names = [lines[0] for lines in sections]
    assert names == [name for name in HEADINGS if name in names], names
    assert names[-1] == SENTINEL
    guidance = sections.pop()
    assert len(guidance) == 5
    assert all(line.startswith("- ") and "](" not in line for line in guidance[1:])
    for name, *lines in sections:
        assert lines, f"{name} is empty"
        corpus.links[name] = _parse_items(name, lines, corpus)
    count = sum(len(links) for links in corpus.links.values())
    # Every item's link is live; nothing else in the whole text is.
    assert len(_LIVE_LINK.findall(text)) == count
    _only_one_sentinel(text)
    return corpus


def _parse_items(name: str, lines: list[str], corpus: Corpus) -> list[tuple[str, str]]:
    links: list[tuple[str, str]] = []
    in_excerpt = False
    for line in lines:
        item = _ITEM.fullmatch(line)
        if item:
            assert bool(item["rest"]) == (name == WEB), line
            assert name != WEB or item["rest"].startswith(": "), line
            links.append((item["title"], item["url"]))
            in_excerpt = False
        elif line.startswith("  Source text: "):
            assert name == WEB
            assert not in_excerpt
            in_excerpt = True
            corpus.excerpts[links[-1][1]] = [line.removeprefix("  Source text: ")]
        else:
            assert in_excerpt, line
            # Indentation does not begin code in the middle of a paragraph.
            assert not _BLOCK.match(line.lstrip()), line
            assert line.strip(), line
            assert not any(_letters(line).startswith(_letters(h.split("(")[0])) for h in HEADINGS)
            corpus.excerpts[links[-1][1]].append(line)
    return links


def _letters(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in folded if char.isalnum() or char == ":")


def _only_one_sentinel(text: str) -> None:
    folded = unicodedata.normalize("NFKC", text).casefold()
    assert text.count(SENTINEL) == 1
    assert folded.count(SENTINEL.casefold()) == 1
    assert " ".join(folded.split()).count(SENTINEL.casefold()) == 1
    assert _letters(text).count("citationguidance:") == 1
