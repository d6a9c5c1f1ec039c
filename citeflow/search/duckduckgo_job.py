"""The half of the DuckDuckGo backend that runs in a worker process: one request, one page read.

ddgs is imported when a job runs, so that the parent process never loads its native client.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

import msgspec

from citeflow.search.backend import parse_retry_after, status_for_http
from citeflow.search.outcome import SearchHit, SearchStatus

if TYPE_CHECKING:
    from ddgs.engines.duckduckgo import Duckduckgo

__all__ = ["JobAnswer", "JobRequest", "run"]

# A result page is about 40 kB. The cap bounds the memory of a worker against a hostile engine.
_MAX_BODY_BYTES = 4_000_000
_CHUNK_BYTES = 65_536


class JobRequest(msgspec.Struct):
    """What the parent asks: `timeout` in seconds for the HTTP exchange, `url` of the engine."""

    query: str
    k: int
    url: str
    timeout: float


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

        from citeflow.search.duckduckgo_page import read_page
    except ImportError:
        return JobAnswer(
            SearchStatus.UNAVAILABLE, detail="the ddgs package is not installed", retryable=False
        )
    _forget_ambient_proxies()
    engine = _engine_class()(timeout=None)  # the request has its own
    form = engine.build_payload(
        query=request.query, region="us-en", safesearch="moderate", timelimit=None
    )
    try:
        # The engine's own client, one level below its request(), which drops status and headers.
        response = engine.http_client.client.request(
            engine.search_method, request.url, data=form, timeout=request.timeout, stream=True
        )
        status_code, headers = response.status_code, response.headers
        body = _read_capped(response)
    except primp.TimeoutError:
        return JobAnswer(SearchStatus.TIMEOUT, detail=f"no answer within {request.timeout:.3g} s")
    except (primp.ConnectError, primp.DNSError):
        return JobAnswer(SearchStatus.UNREACHABLE, detail="no connection")
    except primp.PrimpError as exc:
        return JobAnswer(
            SearchStatus.UNREACHABLE, detail=f"the exchange broke off ({type(exc).__name__})"
        )
    if status_code == 200:
        if body is None:
            return JobAnswer(SearchStatus.UNAVAILABLE, detail="its page is larger than the cap")
        return read_page(engine, body, request.k)
    return JobAnswer(
        status_for_http(status_code),
        detail=f"HTTP {status_code}",
        retry_after=parse_retry_after(headers.get("retry-after")),
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
