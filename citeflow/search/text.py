"""Query and result text as it comes from people and engines, made fit to be sent and stored."""

from __future__ import annotations

from citeflow.search.outcome import SearchHit

__all__ = ["MAX_QUERY_CHARS", "clean_query", "make_hit", "printable"]

# Engines cut or refuse longer queries (DuckDuckGo at about 500 characters), and a SearXNG query
# travels in a URL.
MAX_QUERY_CHARS = 500

# A result is a line in a list. What is longer is no title or snippet, and an event with a hundred
# results must stay far below Kafka's message limit.
_MAX_TITLE_CHARS = 500
_MAX_SNIPPET_CHARS = 1000
_MAX_URL_CHARS = 2000  # longer ones are not cited either


def clean_query(query: str) -> str:
    """`query` on one line, without NUL and lone surrogates, cut to `MAX_QUERY_CHARS`; maybe empty.

    Cut at a word boundary where there is one.
    """
    # Much longer input is cut before it is split, so that 100 MB of text cost nothing either.
    text = _one_line(query[: 20 * MAX_QUERY_CHARS])
    if len(text) <= MAX_QUERY_CHARS:
        return text
    head = text[:MAX_QUERY_CHARS]
    if text[MAX_QUERY_CHARS] != " " and " " in head:
        head = head[: head.rindex(" ")]
    return head.rstrip()


def make_hit(title: str, url: str, snippet: str) -> SearchHit | None:
    """A hit from an engine's raw texts; None without a URL that can be asked for.

    A result without a title is named by its URL.
    """
    address = _encodable(url).strip()
    if not address or len(address) > _MAX_URL_CHARS or any(c.isspace() for c in address):
        return None
    name = _one_line(title[: 4 * _MAX_TITLE_CHARS])[:_MAX_TITLE_CHARS]
    text = _one_line(snippet[: 4 * _MAX_SNIPPET_CHARS])[:_MAX_SNIPPET_CHARS]
    return SearchHit(title=name or address, url=address, snippet=text)


def printable(text: str) -> str:
    """`text` without characters that could forge a line of a log or move a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def _one_line(text: str) -> str:
    return " ".join(_encodable(text).split())


def _encodable(text: str) -> str:
    # Lone surrogates cannot be written as UTF-8 and NUL cannot be stored by PostgreSQL.
    return text.replace("\x00", " ").encode("utf-8", "ignore").decode("utf-8")
