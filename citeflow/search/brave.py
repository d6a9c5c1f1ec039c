"""Brave Search through its API, with the operator's own key."""

from __future__ import annotations

import html
import itertools
import re
from typing import TYPE_CHECKING, Any

import orjson

from citeflow.search.backend import BackendAnswer, parse_retry_after, status_for_http
from citeflow.search.json_api import JsonApi, unusable
from citeflow.search.links import is_web_url
from citeflow.search.outcome import SearchHit, SearchStatus
from citeflow.search.text import make_hit

if TYPE_CHECKING:
    from citeflow.settings import SiteConfig

__all__ = ["API_URL", "BRAVE_KEY_ENV", "BraveBackend"]

API_URL = "https://api.search.brave.com/res/v1/web/search"
"""The endpoint of the web search."""

BRAVE_KEY_ENV = "CITEFLOW_BRAVE_API_KEY"
"""The environment variable that holds the key."""

# The API takes a count of 1 to 20.
_MAX_COUNT = 20

# Titles and descriptions come with the matched words marked and everything else escaped.
_MARKS = re.compile(r"</?(?:strong|b|em)>")


class BraveBackend:
    """The API with the key that the setting `brave_api_key` holds, which travels in a header only.

    `api_url` stands in for the real endpoint.
    """

    name = "brave"
    needs = "the setting brave_api_key"
    retried = False
    per_minute_setting = "web_research_brave_requests_per_minute"

    def __init__(self, site_config: SiteConfig, *, api_url: str = API_URL) -> None:
        self._site_config = site_config
        self._api_url = api_url
        self._api = JsonApi("brave_api_key")

    @property
    def endpoint(self) -> str:
        """See `SearchBackend.endpoint`."""
        return self._api_url

    def available(self) -> bool:
        """True when there is a key."""
        return bool(self._key())

    async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
        """See `SearchBackend.search`."""
        key = self._key()
        if not (key.isascii() and key.isprintable() and " " not in key):
            # Said here, because an exception raised later might quote it.
            return unusable("brave_api_key holds characters that no key has")
        reply = await self._api.get(
            self._api_url,
            params={"q": query, "count": str(min(k, _MAX_COUNT))},
            headers={"X-Subscription-Token": key},
            timeout=timeout,
        )
        if isinstance(reply, BackendAnswer):
            return reply
        if reply.status_code == 200:
            return _read_answer(reply.body, k)
        return BackendAnswer(
            status_for_http(reply.status_code),
            detail=f"HTTP {reply.status_code}",
            retry_after=parse_retry_after(reply.headers.get("retry-after")),
        )

    async def aclose(self) -> None:
        """Close the connections to the API."""
        await self._api.aclose()

    def _key(self) -> str:
        return self._site_config.get_str("brave_api_key").strip()


def _read_answer(body: bytes, k: int) -> BackendAnswer:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return unusable("its answer is not JSON")
    if not isinstance(answer, dict) or answer.get("type") not in (None, "search"):
        return unusable("its answer is not a search response")
    # A query without web results comes without the section.
    web = answer.get("web", {"results": []})
    results = web.get("results") if isinstance(web, dict) else None
    if not isinstance(results, list) or not ("web" in answer or "query" in answer):
        return unusable("its answer holds no list of results")
    made = (_to_hit(result) for result in results[:_MAX_COUNT])
    hits = tuple(itertools.islice((hit for hit in made if hit is not None), k))
    if hits:
        return BackendAnswer(SearchStatus.OK, hits)
    return unusable("its results have no usable links") if results else _EMPTY


_EMPTY = BackendAnswer(SearchStatus.EMPTY)


def _to_hit(result: Any) -> SearchHit | None:
    if not isinstance(result, dict):
        return None
    url = result.get("url")
    if not isinstance(url, str) or not is_web_url(url):
        return None
    return make_hit(_plain(result.get("title")), url, _plain(result.get("description")))


def _plain(value: Any) -> str:
    return html.unescape(_MARKS.sub("", value[:20_000])) if isinstance(value, str) else ""
