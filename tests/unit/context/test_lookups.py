"""Known references and internal links, beyond the acceptance cases."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from citeflow.context import KNOWN_REFERENCES, find_internal_links, get_known_references
from citeflow.context.references import match_references
from citeflow.findings import collect_findings
from tests.support.research import FakePool, config


@pytest.mark.parametrize(
    ("topic", "keyword"),
    [
        ("CI/CD for small teams", "ci/cd"),
        ("Getting started with Next.js", "next.js"),
        ("Docker/Redis in one file", "docker"),
        ("Docker's build cache", "docker"),
        ("AI agents in practice", "ai agent"),
        ("Cloud computing cost", "cloud"),
        ("PostgreSQL: an index primer.", "postgresql"),
    ],
)
def test_keywords_that_match(topic, keyword):
    """Keywords with marks, phrases, plurals and neighbouring punctuation are found."""
    expected = [entry["url"] for entry in KNOWN_REFERENCES[keyword]]
    found = [reference.url for reference in match_references(topic, KNOWN_REFERENCES)]
    assert set(expected) <= set(found)


@pytest.mark.parametrize("topic", ["Real estate agent tips", "C++ and Go", "overreacting", ""])
def test_topics_that_match_nothing(topic):
    """Parts of words and of phrases are not keywords."""
    assert match_references(topic, KNOWN_REFERENCES) == []


def test_keywords_that_differ_by_case_are_merged():
    """No entry is lost to another spelling of its keyword, a null title becomes the address."""
    raw = {
        "Go": [{"title": "A", "url": "https://a.example"}],
        "GO": [{"title": None, "url": "https://b.example"}],
    }
    found = get_known_references(site_config=config(known_references_json=json.dumps(raw)))
    assert found == {
        "go": [
            {"title": "A", "url": "https://a.example"},
            {"title": "https://b.example", "url": "https://b.example"},
        ]
    }


def post(title, slug, year=None):
    published = datetime(year, 1, 1, tzinfo=UTC) if year else None
    return {"title": title, "slug": slug, "published_at": published}


async def test_links_are_ordered_by_shared_words_then_recency_then_slug():
    """More shared words first, later posts before earlier ones, then by slug, five at most."""
    pool = FakePool(
        [
            post("Redis", "z-undated"),
            post("Redis", "b-old", 2020),
            post("Redis", "a-old", 2020),
            post("Redis", "new", 2026),
            post("Redis caching", "both", 2019),
            post("Redis", "y-undated"),
        ]
    )
    links = await find_internal_links(pool, "Redis caching")
    assert [link.slug for link in links] == ["both", "new", "a-old", "b-old", "y-undated"]


async def test_query_words_are_distinct_and_meaningful():
    """Stop-words, short words and repeats are not asked for."""
    pool = FakePool([])
    await find_internal_links(pool, "What is the best Redis guide? Redis with snake_case")
    assert pool.calls[0][1] == ["%redis%", "%snake%", "%case%"]


async def test_only_stop_words_means_no_query():
    """A topic that says nothing never reaches the database."""
    pool = FakePool([])
    assert await find_internal_links(pool, "what works best with this") == []
    assert pool.calls == []


async def test_a_slug_shares_words_too():
    """Words of the slug count as words of the post."""
    links = await find_internal_links(FakePool([post("Untitled", "redis-at-home")]), "Redis")
    assert [link.slug for link in links] == ["redis-at-home"]


@pytest.mark.parametrize(
    ("table", "quoted"), [("posts", '"posts"'), ("site.Entries", '"site"."Entries"')]
)
async def test_the_table_of_posts_can_be_named(table: str, quoted: str) -> None:
    """A table or view of one's own, with its schema."""
    pool = FakePool([post("Redis caching", "redis-caching")])
    assert await find_internal_links(pool, "Redis caching", table=table)
    assert f"FROM {quoted}\n" in pool.calls[0][0]


@pytest.mark.parametrize(
    "table", ["posts; DROP TABLE posts", 'a"b', "a.b.c", "", "1x", "x" * 64, "posts--", "a b"]
)
async def test_what_is_no_name_of_a_table_never_reaches_the_database(table: str) -> None:
    """No query, no links, and a finding."""
    pool = FakePool([post("Redis caching", "redis-caching")])
    with collect_findings() as findings:
        assert await find_internal_links(pool, "Redis caching", table=table) == []
    assert pool.calls == []
    assert [finding.kind for finding in findings] == ["internal_link_search_failed"]
