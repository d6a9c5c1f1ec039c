"""Internal links: published posts of one's own site that share a word with the topic."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from citeflow.findings import emit_finding

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_INTERNAL_LINKS", "FetchPool", "InternalLink", "find_internal_links"]

logger = logging.getLogger(__name__)

MAX_INTERNAL_LINKS = 5
"""Internal links rendered at most."""

# Enough for any title; bounds the work that one long topic can cause in the database.
_MAX_WORDS = 16

# The database narrows by substring, whole words are compared here. Ordered by how many words
# occur so that the limit cuts the least related posts.
_SQL = """
SELECT title, slug, published_at
FROM {table}
WHERE status = 'published' AND (title ILIKE ANY($1::text[]) OR slug ILIKE ANY($1::text[]))
ORDER BY (
    SELECT count(*) FROM unnest($1::text[]) AS pattern
    WHERE title ILIKE pattern OR slug ILIKE pattern
) DESC, published_at DESC NULLS LAST, slug
LIMIT 200
""".strip()

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_WORD = re.compile(r"\w+")
_MIN_WORD_LENGTH = 4
# Words of four or more letters that say nothing about a subject.
_STOP_TEXT = (
    "about above after again against also always another because been before being below best "
    "better between both came cannot could does doing done down during each even ever every "
    "explained find from further gets getting give going good great guide have having here hers "
    "however into introduction itself just keep know like look made make makes making many maybe "
    "mine more most much must need needs never only other ours over really same should simple "
    "since some still such sure take than that their theirs them then there these they thing "
    "things this those through tips took tutorial under until upon used using very want well went "
    "were what when where which while whom whose will with within without work works would your "
    "yours"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())


class FetchPool(Protocol):
    """The part of an `asyncpg` pool that is used."""

    async def fetch(self, query: str, *args: Any) -> Any:
        """Run `query` and return its rows, each with `title`, `slug` and `published_at`."""


@dataclass(frozen=True, slots=True)
class InternalLink:
    """One published post."""

    title: str
    slug: str


def _words(text: str) -> set[str]:
    # A slug joins words with hyphens and sometimes with underscores.
    return set(_WORD.findall(text.lower().replace("_", " ")))


def _topic_words(topic: str) -> list[str]:
    words = _WORD.findall(topic.lower().replace("_", " "))
    wanted = (word for word in words if len(word) >= _MIN_WORD_LENGTH and word not in _STOP_WORDS)
    return list(dict.fromkeys(wanted))[:_MAX_WORDS]


def _published(row: Mapping[str, Any]) -> float:
    value = row.get("published_at")
    return value.timestamp() if isinstance(value, datetime) else float("-inf")


async def find_internal_links(
    pool: FetchPool | None, topic: str, *, table: str = "posts"
) -> list[InternalLink]:
    """Published posts whose title or slug shares a word with `topic`, at most 5.

    `table` is a table or view with the columns of `ops/sql/posts.sql`, as PostgreSQL spells its
    name, with its schema before a dot if it needs one.

    Words are whole, of four or more characters, and not stop-words; posts that share more of
    them come first, then later ones, then by slug. No pool, or no such word: no query and no
    links. A failing query is reported as the finding `internal_link_search_failed` and yields
    no links.
    """
    words = _topic_words(topic)
    if pool is None or not words:
        return []
    try:
        query = _SQL.format(table=_quoted(table))
        rows = await pool.fetch(query, [f"%{word}%" for word in words])
        ranked = _rank(rows, set(words))
    except Exception as exc:  # noqa: BLE001 - the pool is the caller's; its faults cost one section
        logger.warning("internal links left out: %s", type(exc).__name__)
        emit_finding(
            source="research_service",
            kind="internal_link_search_failed",
            severity="info",
            title="Internal links could not be looked up",
            # The type alone: driver messages can hold the database address.
            body=f"The query for related posts failed ({type(exc).__name__}); section left out.",
            extra={"error": type(exc).__name__},
        )
        return []
    return ranked[:MAX_INTERNAL_LINKS]


def _quoted(table: str) -> str:
    """An SQL identifier. Raises `ValueError` for what is no plain name."""
    parts = table.strip().split(".")
    if len(parts) > 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise ValueError("internal_links_table is not the name of a table")
    return ".".join(f'"{part}"' for part in parts)


def _rank(rows: Any, words: set[str]) -> list[InternalLink]:
    scored = []
    for row in rows:
        title, slug = str(row["title"] or ""), str(row["slug"] or "")
        shared = len(words & (_words(title) | _words(slug)))
        if shared and slug:
            scored.append((-shared, -_published(row), slug, title))
    return [InternalLink(title, slug) for _, _, slug, title in sorted(scored)]
