"""A SearXNG instance of the operator's own, through its JSON API."""

from __future__ import annotations

import base64
import itertools
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import orjson

from citeflow.search.backend import BackendAnswer, parse_retry_after, status_for_http
from citeflow.search.json_api import JsonApi, JsonReply, unusable
from citeflow.search.links import is_web_url
from citeflow.search.outcome import SearchHit, SearchStatus
from citeflow.search.text import make_hit, printable

if TYPE_CHECKING:
    from citeflow.settings import SiteConfig

__all__ = ["SEARXNG_URL_ENV", "SearxngBackend"]

SEARXNG_URL_ENV = "CITEFLOW_SEARXNG_URL"
"""The environment variable that names an instance, short for the setting's own."""

# An instance asks a few dozen engines. Only so many reasons are kept, each so long.
_MAX_ENGINES = 20
_MAX_REASON_CHARS = 100

# Looked at most, so that a list of nonsense does not keep the event loop.
_MAX_RESULTS = 1_000

# What SearXNG sends when `json` is not among its `search.formats`: the stock 403 page of the
# framework it is built on. A proxy or firewall in front of it has words of its own.
_JSON_DISABLED_MARK = b"don&#39;t have the permission to access the requested resource"
_JSON_HINT = "is `json` among its search.formats?"

# How the reasons that SearXNG gives for an unresponsive engine translate, the first match counts.
_ENGINE_FAILURES = (
    ("captcha", SearchStatus.CHALLENGED),
    ("too many requests", SearchStatus.RATE_LIMITED),
    ("access denied", SearchStatus.BLOCKED),
    ("timeout", SearchStatus.TIMEOUT),
)


class SearxngBackend:
    """The instance that the setting `web_research_searxng_url` names.

    The setting is a base URL (`http://127.0.0.1:8080`, a path is kept); the address of the
    `/search` endpoint itself is accepted too.
    """

    name = "searxng"
    needs = "the setting web_research_searxng_url"

    retried = False
    per_minute_setting = "web_research_searxng_requests_per_minute"

    def __init__(self, site_config: SiteConfig) -> None:
        self._site_config = site_config
        self._api = JsonApi("web_research_searxng_url")

    @property
    def endpoint(self) -> str:
        """See `SearchBackend.endpoint`."""
        instance = _instance(self._base_url())
        return instance[0] if instance else self.name

    def available(self) -> bool:
        """True when an instance is configured."""
        return bool(self._base_url())

    async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
        """See `SearchBackend.search`."""
        instance = _instance(self._base_url())
        if instance is None:
            return unusable("web_research_searxng_url is not an http or https URL")
        endpoint, headers = instance
        reply = await self._api.get(
            endpoint, params={"q": query, "format": "json"}, headers=headers, timeout=timeout
        )
        if isinstance(reply, BackendAnswer):
            return reply
        return _read_answer(reply.body, k) if reply.status_code == 200 else _refusal(reply)

    async def aclose(self) -> None:
        """Close the connections to the instance."""
        await self._api.aclose()

    def _base_url(self) -> str:
        return self._site_config.get_str("web_research_searxng_url").strip()


def _instance(base_url: str) -> tuple[str, dict[str, str]] | None:
    """The address to ask, without the credentials that the base URL may hold, and those as headers.

    The HTTP client writes addresses to its log as they are.
    """
    if not is_web_url(base_url):
        return None
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/search") + "/search"
    credentials, _, host = parts.netloc.rpartition("@")
    headers = {}
    if credentials:
        token = base64.b64encode(unquote(credentials).encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    return urlunsplit((parts.scheme, host, path, "", "")), headers


def _refusal(reply: JsonReply) -> BackendAnswer:
    code = reply.status_code
    if code == 403:
        if _JSON_DISABLED_MARK in reply.body:
            return unusable("its JSON format is disabled: add `json` to its search.formats")
        return BackendAnswer(SearchStatus.BLOCKED, detail=f"HTTP 403; {_JSON_HINT}")
    if 300 <= code < 400:
        return unusable(f"HTTP {code}: web_research_searxng_url redirects elsewhere")
    return BackendAnswer(
        status_for_http(code),
        detail=f"HTTP {code}",
        retry_after=parse_retry_after(reply.headers.get("retry-after")),
    )


def _read_answer(body: bytes, k: int) -> BackendAnswer:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return unusable(f"its answer is not JSON; {_JSON_HINT}")
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        return unusable("its answer holds no list of results")
    unresponsive = _reasons(answer.get("unresponsive_engines"))
    made = (_to_hit(result) for result in results[:_MAX_RESULTS])
    hits = tuple(itertools.islice((hit for hit in made if hit is not None), k))
    if hits:
        return BackendAnswer(SearchStatus.OK, hits, unresponsive=unresponsive)
    if results:
        return unusable("its results have no usable links")
    return _nothing_found(unresponsive)


def _nothing_found(reasons: tuple[str, ...]) -> BackendAnswer:
    """An honest zero only if all of the engines behind the instance were heard."""
    if not reasons:
        return BackendAnswer(SearchStatus.EMPTY)
    status = next(
        (status for mark, status in _ENGINE_FAILURES if any(mark in r.lower() for r in reasons)),
        SearchStatus.UNREACHABLE,
    )
    listed = "; ".join(reasons[:5])
    return BackendAnswer(
        status, detail=f"its engines did not respond: {listed}"[:300], unresponsive=reasons
    )


def _reasons(unresponsive: Any) -> tuple[str, ...]:
    """`[[engine, reason], ...]` as clauses, without characters that could forge a log line."""
    if not isinstance(unresponsive, list):
        return ()
    return tuple(_reason(entry) for entry in unresponsive[:_MAX_ENGINES])


def _reason(entry: Any) -> str:
    parts = entry if isinstance(entry, list) else [entry]
    text = ": ".join(part for part in parts[:2] if isinstance(part, str))
    return printable(text[:_MAX_REASON_CHARS])


def _to_hit(result: Any) -> SearchHit | None:
    if not isinstance(result, dict):
        return None
    url, title, content = (_text(result.get(key)) for key in ("url", "title", "content"))
    return make_hit(title, url, content) if is_web_url(url) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
