"""The half of the DuckDuckGo backends that runs in a worker process: one request, one page read.

ddgs is imported when a job runs, so that the parent process never loads its native client.
"""

from __future__ import annotations

import functools
import os
import time
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin, urlsplit

import msgspec

from citeflow.search.backend import CHALLENGE_STATUS, parse_retry_after, status_for_http
from citeflow.search.links import is_duckduckgo_host
from citeflow.search.outcome import SearchHit, SearchStatus

if TYPE_CHECKING:
    from ddgs.engines.duckduckgo import Duckduckgo

__all__ = ["JobAnswer", "JobRequest", "run"]

# A result page is about 40 kB. The cap bounds the memory of a worker against a hostile engine.
_MAX_BODY_BYTES = 4_000_000
_CHUNK_BYTES = 65_536

# The engine moves a request between its own hosts at most once; more is a loop.
_MAX_REDIRECTS = 2

# Shorter than this there is no exchange to be had.
_MIN_SECONDS = 0.01


class JobRequest(msgspec.Struct):
    """What the parent asks: `url` of the engine, and which of its pages that is.

    `expires` is the time on the system's monotonic clock, which processes share, by which the
    exchange must be over: waiting for this worker is part of it.
    """

    query: str
    k: int
    url: str
    expires: float
    page: Literal["html", "lite"] = "html"


class JobAnswer(msgspec.Struct):
    """What the parent gets; the fields mean what they mean in `BackendAnswer`."""

    status: SearchStatus
    hits: list[SearchHit] = []
    detail: str = ""
    retry_after: float | None = None
    retryable: bool = True


def run(payload: bytes) -> bytes:
    """A `JobRequest` as JSON in, a `JobAnswer` as JSON out."""
    request = msgspec.json.decode(payload, type=JobRequest)
    return msgspec.json.encode(_search(request))


def _search(request: JobRequest) -> JobAnswer:
    try:
        import primp

        from citeflow.search.ddg_lite_page import read_lite_page
        from citeflow.search.duckduckgo_page import read_page
    except ImportError:
        return JobAnswer(
            SearchStatus.UNAVAILABLE, detail="the ddgs package is not installed", retryable=False
        )
    _forget_ambient_proxies()
    engine = _engine_class()(timeout=None)  # each request has its own
    try:
        response = _exchange(engine, request)
        if response is None:
            return JobAnswer(SearchStatus.UNAVAILABLE, detail="it redirects to another site")
        status_code, headers = response.status_code, response.headers
        body = _read_capped(response)
    except (primp.TimeoutError, TimeoutError):
        return JobAnswer(SearchStatus.TIMEOUT, detail="no answer in time")
    except (primp.ConnectError, primp.DNSError):
        return JobAnswer(SearchStatus.UNREACHABLE, detail="no connection")
    except primp.PrimpError as exc:
        return JobAnswer(
            SearchStatus.UNREACHABLE, detail=f"the exchange broke off ({type(exc).__name__})"
        )
    if status_code in (200, CHALLENGE_STATUS):
        if body is None:
            return JobAnswer(SearchStatus.UNAVAILABLE, detail="its page is larger than the cap")
        if request.page == "lite":
            answer = read_lite_page(body, request.k)
        else:
            answer = read_page(engine, body, request.k)
        # A challenge that comes with results all the same is none.
        if status_code == 200 or answer.hits:
            return answer
    return JobAnswer(
        status_for_http(status_code),
        detail=f"HTTP {status_code}",
        retry_after=parse_retry_after(headers.get("retry-after")),
    )


def _exchange(engine: Duckduckgo, request: JobRequest) -> Any:
    """The response to the query's form, None when it leads away from the engine's own hosts."""
    # The engine's own client, one level below its request(), which drops status and headers.
    client = engine.http_client.client
    form: dict[str, Any] | None = {"q": request.query, "kl": "us-en"}
    if request.page == "html":
        form = engine.build_payload(
            query=request.query, region="us-en", safesearch="moderate", timelimit=None
        )
    method, url = "POST", request.url
    for _ in range(_MAX_REDIRECTS + 1):
        left = request.expires - time.monotonic()
        if left < _MIN_SECONDS:
            raise TimeoutError
        response = client.request(
            method, url, data=form, timeout=left, stream=True, follow_redirects=False
        )
        location = response.headers.get("location")
        if not (300 <= response.status_code < 400 and location):
            break
        target = urljoin(url, location)
        if not _same_engine(request.url, target):
            return None
        url = target
        if response.status_code < 307:
            # What browsers do: 301 to 303 after a form are fetched without it.
            method, form = "GET", None
    return response


def _same_engine(url: str, target: str) -> bool:
    ours, theirs = urlsplit(url), urlsplit(target)
    if (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc):
        return True
    return theirs.scheme == "https" and all(
        is_duckduckgo_host(parts.hostname or "") for parts in (ours, theirs)
    )


@functools.cache
def _engine_class() -> type[Duckduckgo]:
    from ddgs.engines.duckduckgo import Duckduckgo

    return Duckduckgo


@functools.cache
def _forget_ambient_proxies() -> None:
    # No request leaves through a proxy that citeflow's own settings do not name.
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        os.environ.pop(name)


def _read_capped(response: Any) -> bytes | None:
    """The decompressed body, None when it is larger than the cap."""
    chunks: list[bytes] = []
    size = 0
    for chunk in response.iter_bytes(_CHUNK_BYTES):
        size += len(chunk)
        if size > _MAX_BODY_BYTES:
            response.close()
            return None
        chunks.append(chunk)
    return b"".join(chunks)
