"""The sample web: what a newcomer's first run searches and reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from citeflow.fetch import FetchStatus, PageFetcher
from citeflow.search import SearchChain, SearchStatus
from citeflow.settings import SiteConfig
from streams.demo import DemoWeb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEFAULT_TOPIC = "FastAPI streaming responses"


@pytest.fixture
async def demo() -> AsyncIterator[DemoWeb]:
    async with DemoWeb() as web:
        yield web


@pytest.fixture
async def chain(demo: DemoWeb) -> AsyncIterator[SearchChain]:
    values = {"web_research_backends": "searxng", "web_research_searxng_url": demo.search_url}
    async with SearchChain(SiteConfig(values, environ={})) as made:
        yield made


async def test_default_topic_shows_filtering(demo: DemoWeb, chain: SearchChain) -> None:
    """Among the first five: two good articles, a copy, a page that is down and a thin one."""
    outcome = await chain.search(DEFAULT_TOPIC, 5)
    assert [hit.url.removeprefix(demo.origin) for hit in outcome.hits] == [
        "/guides/fastapi-streaming-responses",
        "/mirror/fastapi-streaming-responses",
        "/guides/fastapi-streaming-proxy",
        "/guides/server-sent-events-fastapi",
        "/notes/fastapi-streaming-cheat-sheet",
    ]
    assert [len(hit.snippet.split()) >= 10 for hit in outcome.hits] == [True] * 4 + [False]
    async with httpx.AsyncClient(trust_env=False) as client:
        codes = [(await client.get(hit.url)).status_code for hit in outcome.hits]
    assert codes == [200, 200, 503, 200, 200]


@pytest.mark.parametrize(
    ("topic", "first"),
    [
        ("Kafka consumer groups", "/guides/kafka-consumer-groups"),
        ("PostgreSQL indexes", "/guides/postgresql-indexes"),
        ("caching with Redis", "/guides/redis-caching"),
        ("How do I reduce Docker image size?", "/guides/docker-image-size"),
        ("server-sent events", "/guides/server-sent-events-fastapi"),
    ],
)
async def test_obvious_topics_find_their_article(
    demo: DemoWeb, chain: SearchChain, topic: str, first: str
) -> None:
    """The topics a newcomer tries have their article first."""
    outcome = await chain.search(topic)
    assert outcome.hits[0].url == demo.origin + first


@pytest.mark.parametrize("topic", ["quantum entanglement", "what is the", "日本語"])
async def test_nothing_shared_is_an_honest_zero(chain: SearchChain, topic: str) -> None:
    """Stop words are no match, and an engine without a match says so."""
    outcome = await chain.search(topic)
    assert (outcome.status, outcome.hits) == (SearchStatus.EMPTY, ())


async def test_pages_have_an_article_inside_boilerplate(demo: DemoWeb) -> None:
    """Each good article has 250 to 500 words, and a banner, navigation and footer around it."""
    async with httpx.AsyncClient(trust_env=False) as client:
        front = (await client.get(demo.origin)).text
        for path in re.findall(r'href="(/guides/[^"]+)"', front):
            response = await client.get(demo.origin + path)
            if response.status_code != 200:
                continue
            article = response.text.partition("<article>")[2].partition("</article>")[0]
            words = re.sub(r"<[^>]*>", " ", article).split()
            assert 250 <= len(words) <= 500, path
            for part in ("We use cookies", "<nav>", "<footer>", "article:published_time"):
                assert response.text.count(part) == 1, (path, part)
        assert (await client.get(f"{demo.origin}/nothing-here")).status_code == 404


async def test_search_answers_in_the_shape_of_searxng(demo: DemoWeb) -> None:
    """The keys that SearXNG clients read are there, also without a query."""
    async with httpx.AsyncClient(trust_env=False) as client:
        for query, found in (("redis", 1), ("", 0)):
            params = {"q": query, "format": "json"}
            answer = (await client.get(demo.search_url, params=params)).json()
            assert len(answer["results"]) == answer["number_of_results"] == found
            assert answer["unresponsive_engines"] == []
            assert all(set(r) == {"title", "url", "content"} for r in answer["results"])


async def test_port_in_use_is_an_error() -> None:
    """Two sample webs cannot share a port, and the second leaves nothing behind."""
    async with DemoWeb() as first:
        port = int(first.origin.rpartition(":")[2])
        with pytest.raises(OSError, match="address already in use"):
            await DemoWeb(port=port).__aenter__()


async def test_pages_are_read_without_their_boilerplate(demo: DemoWeb, chain: SearchChain) -> None:
    """What a run reads of the sample pages is the article, without banner and footer."""
    config = SiteConfig({"fetch_allowed_internal_origins": demo.origin}, environ={})
    outcome = await chain.search("kafka postgresql redis docker", 4)
    async with PageFetcher(config) as fetcher:
        pages = [await fetcher.fetch(hit.url) for hit in outcome.hits]
    assert [page.status for page in pages] == [FetchStatus.OK] * 4
    for page in pages:
        assert len(page.text) > 1500
        for boilerplate in ("cookie", "newsletter", "rights reserved", "Privacy policy"):
            assert boilerplate not in page.text
