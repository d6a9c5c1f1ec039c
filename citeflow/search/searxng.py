"""A SearXNG instance of the operator's own, through its JSON API.

The instance is configured, not found on a page, so the address guard of page fetches does not
apply to it: it may well be on localhost. For the same reason nothing but its own answer is
followed: no redirects, no ambient proxies.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import orjson

from citeflow.search.backend import BackendAnswer, parse_retry_after, status_for_http
from citeflow.search.links import is_web_url
from citeflow.search.outcome import SearchHit, SearchStatus
from citeflow.search.text import make_hit

if TYPE_CHECKING:
    from citeflow.settings import SiteConfig

__all__ = ["SearxngBackend"]

# An answer of 50 results is about 60 kB. The cap bounds memory against a proxy gone wrong.
_MAX_BODY_BYTES = 4_000_000

# Enough of a refusal to recognise it by.
_MAX_ERROR_BYTES = 20_000

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

    def __init__(self, site_config: SiteConfig) -> None:
        self._site_config = site_config
        self._client: httpx.AsyncClient | None = None

    def available(self) -> bool:
        """True when an instance is configured."""
        return bool(self._base_url())

    async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
        """See `SearchBackend.search`."""
        endpoint = _endpoint(self._base_url())
        if endpoint is None:
            return _unavailable("web_research_searxng_url is not an http or https URL")
        try:
            async with asyncio.timeout(timeout):
                return await self._ask(endpoint, query, k, timeout)
        except (TimeoutError, httpx.TimeoutException):
            return BackendAnswer(SearchStatus.TIMEOUT, detail=f"no answer within {timeout:g} s")
        except httpx.ConnectError:
            return BackendAnswer(SearchStatus.UNREACHABLE, detail="no connection")
        except httpx.TransportError as exc:
            return BackendAnswer(
                SearchStatus.UNREACHABLE, detail=f"the exchange broke off ({type(exc).__name__})"
            )
        except (httpx.InvalidURL, UnicodeError):
            return _unavailable("web_research_searxng_url cannot be asked for")

    async def aclose(self) -> None:
        """Close the connections to the instance."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _base_url(self) -> str:
        return self._site_config.get_str("web_research_searxng_url").strip()

    async def _ask(self, endpoint: str, query: str, k: int, timeout: float) -> BackendAnswer:
        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False, follow_redirects=False)
        # Unencoded, so that the cap on what is received is a cap on what is kept.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        params = {"q": query, "format": "json"}
        async with self._client.stream(
            "GET", endpoint, params=params, headers=headers, timeout=timeout
        ) as response:
            if response.status_code != 200:
                return _refusal(response, await _read(response, _MAX_ERROR_BYTES))
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                return _unavailable("its answer is compressed against our request")
            body = await _read(response, _MAX_BODY_BYTES + 1)
            if len(body) > _MAX_BODY_BYTES:
                return _unavailable("its answer is larger than the cap")
        return _read_answer(body, k)


def _endpoint(base_url: str) -> str | None:
    if not is_web_url(base_url):
        return None
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/search") + "/search"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


async def _read(response: httpx.Response, limit: int) -> bytes:
    """The first `limit` bytes of the body as sent, or all of it."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def _refusal(response: httpx.Response, body: bytes) -> BackendAnswer:
    code = response.status_code
    if code == 403:
        if _JSON_DISABLED_MARK in body:
            return _unavailable("its JSON format is disabled: add `json` to its search.formats")
        return BackendAnswer(SearchStatus.BLOCKED, detail=f"HTTP 403; {_JSON_HINT}")
    if 300 <= code < 400:
        return _unavailable(f"HTTP {code}: web_research_searxng_url redirects elsewhere")
    return BackendAnswer(
        status_for_http(code),
        detail=f"HTTP {code}",
        retry_after=parse_retry_after(response.headers.get("retry-after")),
    )


def _read_answer(body: bytes, k: int) -> BackendAnswer:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _unavailable(f"its answer is not JSON; {_JSON_HINT}")
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        return _unavailable("its answer holds no list of results")
    made = [_to_hit(result) for result in results]
    hits = tuple(hit for hit in made if hit is not None)[:k]
    if hits:
        return BackendAnswer(SearchStatus.OK, hits)
    if results:
        return _unavailable("its results have no usable links")
    return _nothing_found(answer.get("unresponsive_engines"))


def _nothing_found(unresponsive: Any) -> BackendAnswer:
    """An honest zero only if all of the engines behind the instance were heard."""
    if not isinstance(unresponsive, list) or not unresponsive:
        return BackendAnswer(SearchStatus.EMPTY)
    reasons = [_reason(entry) for entry in unresponsive]
    status = next(
        (status for mark, status in _ENGINE_FAILURES if any(mark in r.lower() for r in reasons)),
        SearchStatus.UNREACHABLE,
    )
    listed = "; ".join(reasons[:5])
    return BackendAnswer(status, detail=f"its engines did not respond: {listed}"[:300])


def _reason(entry: Any) -> str:
    """`[engine, reason]` as a clause, without characters that could forge a log line."""
    parts = entry if isinstance(entry, list) else [entry]
    text = ": ".join(part for part in parts if isinstance(part, str))
    return "".join(char if char.isprintable() else " " for char in text).strip()


def _to_hit(result: Any) -> SearchHit | None:
    if not isinstance(result, dict):
        return None
    url, title, content = (_text(result.get(key)) for key in ("url", "title", "content"))
    return make_hit(title, url, content) if is_web_url(url) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _unavailable(detail: str) -> BackendAnswer:
    return BackendAnswer(SearchStatus.UNAVAILABLE, detail=detail, retryable=False)
