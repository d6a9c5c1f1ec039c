"""Internal links from a real PostgreSQL with the schema of ops/sql/posts.sql."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from citeflow.context import find_internal_links

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

POSTS_SQL = Path(__file__).parents[2] / "ops/sql/posts.sql"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[asyncpg.Pool[Any]]:
    """A pool on a database that holds the empty posts table."""
    async with asyncpg.create_pool(database_url, min_size=1, max_size=2) as pool:
        await pool.execute(POSTS_SQL.read_text())
        yield pool


async def publish(
    pool: asyncpg.Pool[Any], title: str, slug: str, *, days_old: int = 1, status: str = "published"
) -> None:
    """Add one post."""
    await pool.execute(
        "INSERT INTO posts (title, slug, status, published_at) VALUES ($1, $2, $3, $4)",
        title,
        slug,
        status,
        NOW - timedelta(days=days_old),
    )


async def found(pool: asyncpg.Pool[Any], topic: str) -> list[str]:
    """The slugs found for the topic, in order."""
    return [link.slug for link in await find_internal_links(pool, topic)]


async def test_the_schema_can_be_applied_twice(pool: asyncpg.Pool[Any]) -> None:
    """posts.sql is safe on a database that has the table, and slugs are unique."""
    await pool.execute(POSTS_SQL.read_text())
    await publish(pool, "One", "same")
    with pytest.raises(asyncpg.UniqueViolationError):
        await publish(pool, "Two", "same")


async def test_only_whole_words_match(pool: asyncpg.Pool[Any]) -> None:
    """The topic "rate" finds a post on interest rates, not one that generates reports."""
    await publish(pool, "Generate reports", "generate-reports")
    await publish(pool, "Interest rate basics", "interest-rate-basics")
    assert await found(pool, "rate") == ["interest-rate-basics"]


async def test_a_word_of_the_slug_is_enough(pool: asyncpg.Pool[Any]) -> None:
    """Title and slug count alike, whatever the letters' case."""
    await publish(pool, "Our cache", "redis-at-home")
    await publish(pool, "REDIS Tips", "cache-tips")
    assert set(await found(pool, "Redis caching patterns")) == {"redis-at-home", "cache-tips"}


async def test_title_and_slug_come_back_as_stored(pool: asyncpg.Pool[Any]) -> None:
    """A link carries the post's own title and slug."""
    await publish(pool, "Redis at home", "redis-at-home")
    (link,) = await find_internal_links(pool, "Redis caching patterns")
    assert (link.title, link.slug) == ("Redis at home", "redis-at-home")


@pytest.mark.parametrize("status", ["draft", "archived", "Published "])
async def test_unpublished_posts_are_never_shown(pool: asyncpg.Pool[Any], status: str) -> None:
    """Only the status `published` counts."""
    await publish(pool, "Redis secrets", "redis-secrets", status=status)
    assert await found(pool, "Redis caching patterns") == []


async def test_more_shared_words_first_then_newer_then_slug(pool: asyncpg.Pool[Any]) -> None:
    """The order is: number of shared words, then recency, then slug; and it is stable."""
    await publish(pool, "Redis streams", "b-old", days_old=30)
    await publish(pool, "Redis modules", "z-new", days_old=2)
    await publish(pool, "Redis clusters", "a-new", days_old=2)
    await publish(pool, "Redis caching explained", "oldest-but-two-words", days_old=300)
    expected = ["oldest-but-two-words", "a-new", "z-new", "b-old"]
    assert await found(pool, "Redis caching patterns") == expected
    assert await found(pool, "Redis caching patterns") == expected


async def test_five_at_most(pool: asyncpg.Pool[Any]) -> None:
    """The best five are kept."""
    for number in range(8):
        await publish(pool, "Redis tips", f"redis-{number}", days_old=number + 1)
    assert await found(pool, "redis") == [f"redis-{number}" for number in range(5)]


@pytest.mark.parametrize("topic", ["100%_legit", "a_b", "rate%", "x'; DROP TABLE posts; --"])
async def test_a_topic_is_data(pool: asyncpg.Pool[Any], topic: str) -> None:
    """Wildcards and quotes in the topic match nothing by themselves and harm nothing."""
    await publish(pool, "Interest basics", "interest-basics")
    assert await found(pool, topic) == []
    assert await pool.fetchval("SELECT count(*) FROM posts") == 1
