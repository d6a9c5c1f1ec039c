"""The pages of the sample web, and the search over them.

The first five are what a search for "FastAPI streaming responses" finds: two good articles, and
between them a copy of the first, a page that is down and one that says too little, so that a run
shows what is filtered out and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from selectolax.lexbor import LexborHTMLParser

__all__ = ["Page", "find_pages", "load_pages"]

# File name without suffix, path, HTTP status. Pages that match equally well rank in this order.
_PAGES = (
    ("fastapi-streaming-responses", "/guides/fastapi-streaming-responses", 200),
    ("fastapi-streaming-responses-mirror", "/mirror/fastapi-streaming-responses", 200),
    ("fastapi-streaming-proxy", "/guides/fastapi-streaming-proxy", 503),
    ("server-sent-events-fastapi", "/guides/server-sent-events-fastapi", 200),
    ("fastapi-streaming-cheat-sheet", "/notes/fastapi-streaming-cheat-sheet", 200),
    ("kafka-consumer-groups", "/guides/kafka-consumer-groups", 200),
    ("postgresql-indexes", "/guides/postgresql-indexes", 200),
    ("redis-caching", "/guides/redis-caching", 200),
    ("docker-image-size", "/guides/docker-image-size", 200),
)

# A word of the title says more about a page than a word of its text.
_TITLE_WEIGHT = 3

_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about an and are as at be best between by can do does for from has have how i in into is
        it its my of on or over should so than that the their there this to up use using vs was
        what when where which while who why will with without you your
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Page:
    """One page: where it is, how it answers, what it sends, and what a search knows about it."""

    path: str
    status: int
    html: str
    title: str
    snippet: str
    title_words: frozenset[str]
    words: frozenset[str]


def load_pages() -> tuple[Page, ...]:
    """All pages, with the navigation, cookie banner and footer of the site around each."""
    header, footer = _read("_header"), _read("_footer")
    return tuple(_load(name, path, status, header, footer) for name, path, status in _PAGES)


def find_pages(pages: tuple[Page, ...], query: str) -> list[Page]:
    """The pages that share a word with `query`, those that share most first; maybe none."""
    wanted = _words(query)
    scores = [
        _TITLE_WEIGHT * len(wanted & page.title_words) + len(wanted & page.words) for page in pages
    ]
    ranked = sorted(zip(scores, pages, strict=True), key=lambda pair: -pair[0])
    return [page for score, page in ranked if score > 0]


def _load(name: str, path: str, status: int, header: str, footer: str) -> Page:
    source = _read(name)
    tree = LexborHTMLParser(source)
    title = tree.css("title")[0].text()
    snippet = tree.css("meta[name=description]")[0].attributes["content"] or ""
    return Page(
        path=path,
        status=status,
        html=source.replace("<body>\n", f"<body>\n{header}").replace("</body>", f"{footer}</body>"),
        title=title,
        snippet=snippet,
        title_words=_words(title),
        words=_words(f"{snippet} {tree.css('article')[0].text(separator=' ')}"),
    )


def _read(name: str) -> str:
    return resources.files("streams.demo").joinpath("pages", f"{name}.html").read_text("utf-8")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower())) - _STOP_WORDS
