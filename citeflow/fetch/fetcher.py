"""Read pages: address in, outcome out. Every failure is an outcome."""

from __future__ import annotations

import asyncio
import datetime
import functools
import hashlib
import logging
import os
import ssl
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import httpcore
import httpx
import msgspec

from citeflow.errors import SSRFBlockedError, URLScrapeError
from citeflow.fetch.download import Body, Download, FetchEndedError
from citeflow.fetch.exchange import Extracted, ExtractRequest, Readability
from citeflow.fetch.inflate import BodyTooLargeError, BrokenBodyError, TruncatedBodyError
from citeflow.fetch.limits import EXTRACT_LIMITS, PageLimits
from citeflow.fetch.network import NameNotFoundError, Resolver, resolve_host
from citeflow.fetch.outcome import FetchOutcome, FetchStatus
from citeflow.fetch.targets import Policy, parse_origins
from citeflow.fetch.transport import GuardedTransport
from citeflow.fetch.user_agent import build_crawler_ua
from citeflow.workers import WorkerError, WorkerPool, WorkerTimeout

if TYPE_CHECKING:
    from types import TracebackType

    from citeflow.settings import SiteConfig

__all__ = ["PageFetcher", "failure_of"]

logger = logging.getLogger(__name__)

_AS_SETTINGS = PageLimits()
_READABILITY = {
    Readability.OK: (FetchStatus.OK, ""),
    Readability.EMPTY: (FetchStatus.EMPTY, "the page has no main text"),
    Readability.MOJIBAKE: (FetchStatus.MOJIBAKE, "the page's text is unreadable"),
    Readability.CHALLENGED: (FetchStatus.CHALLENGED, "the site asks for proof of a person"),
    Readability.CONSENT_WALL: (FetchStatus.CONSENT_WALL, "only a cookie notice was shown"),
    Readability.LOGIN_WALL: (FetchStatus.LOGIN_WALL, "the text is for members or subscribers"),
    Readability.SOFT_404: (FetchStatus.SOFT_404, "the page says that it does not exist"),
    Readability.SCRIPT_ONLY: (FetchStatus.SCRIPT_ONLY, "the page is empty without its scripts"),
    Readability.ENCRYPTED: (FetchStatus.ENCRYPTED, "the PDF wants a password"),
    Readability.SCANNED: (FetchStatus.SCANNED, "the PDF has images and no text"),
    Readability.DAMAGED: (FetchStatus.DECODE_ERROR, "the PDF is damaged"),
    Readability.UNSUPPORTED: (FetchStatus.UNSUPPORTED_TYPE, "no library to read PDF with"),
}


@functools.cache
def _workers() -> WorkerPool:
    return WorkerPool(
        "citeflow.fetch.extract:run",
        size=os.cpu_count() or 1,
        max_jobs_per_worker=EXTRACT_LIMITS.jobs_per_worker,
        memory_limit_bytes=EXTRACT_LIMITS.worker_memory_bytes,
    )


class PageFetcher:
    """Reads pages of the public web, and of the origins the operator allows.

        async with PageFetcher(site_config) as fetcher:
            outcome = await fetcher.fetch("https://example.org/page")

    One fetcher serves any number of concurrent tasks of one event loop and keeps connections for
    the next page of a site. Text is extracted in worker processes shared by the whole program.
    `resolve` finds the addresses of a host and `dial` connects to one address; the defaults are
    the system's.
    """

    def __init__(
        self,
        site_config: SiteConfig,
        *,
        resolve: Resolver = resolve_host,
        dial: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._site_config = site_config
        self._transport = GuardedTransport(resolve=resolve, dial=dial)

    async def __aenter__(self) -> Self:
        _workers().warm(1)  # it starts while the first page is on its way
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._transport.aclose()

    async def fetch(
        self, url: str, *, timeout: float | None = None, limits: PageLimits = _AS_SETTINGS
    ) -> FetchOutcome:
        """Read one page; never raises, except for its own cancellation.

        `timeout` in seconds bounds the whole download, from the name look-up to the last byte
        (default: `web_research_fetch_timeout_seconds`); `limits` replaces other settings for this
        call. Extraction has a bound of its own, from
        when a worker takes the page.
        """
        started = time.monotonic()
        config = self._site_config
        download = Download(
            self._transport,
            Policy(
                parse_origins(config.get_str("fetch_allowed_internal_origins")),
                config.get_bool("url_scraper_allow_internal_ips"),
            ),
            build_crawler_ua(config),
            _first(limits.max_bytes, config.get_int("fetch_max_body_bytes")),
            _first(limits.max_pdf_bytes, config.get_int("fetch_max_pdf_bytes")),
            https_only=limits.https_only,
        )
        max_chars = _first(limits.max_chars, config.get_int("web_research_max_content_chars"))
        if timeout is None:
            timeout = config.get_float("web_research_fetch_timeout_seconds")
        outcome = FetchOutcome(FetchStatus.ERROR, url, fetched_at=time.time())
        try:
            async with asyncio.timeout(timeout) as deadline:
                if limits.pdf_seconds is not None:
                    ends = asyncio.get_running_loop().time() + limits.pdf_seconds
                    download.on_pdf = functools.partial(deadline.reschedule, ends)
                body = await download.run(url)
            outcome = _with_text(outcome, await _extract(body, max_chars))
        except Exception as exc:  # the boundary of the stage: all becomes an outcome
            status, detail = failure_of(exc)
            if status is FetchStatus.ERROR:
                logger.exception("a fetch failed in an unforeseen way")
            outcome = replace(outcome, status=status, detail=detail)
        return replace(
            outcome,
            http_status=download.http_status,
            final_url=download.final_url,
            content_type=download.content_type,
            elapsed_ms=(time.monotonic() - started) * 1000,
        )


async def _extract(body: Body, max_chars: int) -> Extracted:
    today = datetime.datetime.now(datetime.UTC).date()
    request = ExtractRequest(body.data, body.kind, body.charset, max_chars, today)
    answer = await _workers().run(msgspec.msgpack.encode(request), timeout=EXTRACT_LIMITS.seconds)
    return msgspec.msgpack.decode(answer, type=Extracted)


def _first(wanted: int | None, default: int) -> int:
    return default if wanted is None else wanted


def _with_text(outcome: FetchOutcome, page: Extracted) -> FetchOutcome:
    status, detail = _READABILITY[page.readability]
    return replace(
        outcome,
        status=status,
        detail=detail,
        charset=page.charset,
        title=page.title,
        text=page.text,
        truncated=page.truncated,
        content_sha256=hashlib.sha256(page.text.encode()).hexdigest() if page.text else "",
        stage=page.stage,
        published_at=page.published_at,
        published_on=page.published_on,
        date_confidence=page.date_confidence,
    )


# In this order: the first class that an exception is an instance of decides.
_FAILURES: tuple[tuple[type[Exception], FetchStatus, str], ...] = (
    (SSRFBlockedError, FetchStatus.BLOCKED, ""),
    (URLScrapeError, FetchStatus.BAD_URL, ""),
    (httpx.InvalidURL, FetchStatus.BAD_URL, "the URL cannot be parsed"),
    (NameNotFoundError, FetchStatus.DNS_ERROR, "the host name has no address"),
    (BodyTooLargeError, FetchStatus.TOO_LARGE, "the body is larger than the cap"),
    (TruncatedBodyError, FetchStatus.TRUNCATED, ""),
    (BrokenBodyError, FetchStatus.DECODE_ERROR, ""),
    (httpcore.TimeoutException, FetchStatus.TIMEOUT, "the server did not answer in time"),
    (TimeoutError, FetchStatus.TIMEOUT, "the page was not read in time"),
    (ssl.SSLError, FetchStatus.TLS_ERROR, "the TLS handshake or certificate was refused"),
    (httpcore.NetworkError, FetchStatus.CONNECT_ERROR, "no connection, or it broke"),
    (httpcore.ProtocolError, FetchStatus.CONNECT_ERROR, "the server broke the HTTP protocol"),
    (OSError, FetchStatus.CONNECT_ERROR, "no connection, or it broke"),
    (WorkerTimeout, FetchStatus.EXTRACT_FAILED, "extraction took too long on this page"),
    (WorkerError, FetchStatus.EXTRACT_FAILED, "extraction failed on this page"),
)


def failure_of(exc: Exception) -> tuple[FetchStatus, str]:
    """The status an exception means, and a short reason for people, without secrets."""
    if isinstance(exc, FetchEndedError):
        return exc.status, str(exc)
    if isinstance(exc, httpcore.ConnectError) and _from_tls(exc):
        return FetchStatus.TLS_ERROR, "the TLS handshake or certificate was refused"
    for kind, status, detail in _FAILURES:
        if isinstance(exc, kind):
            return status, detail or str(exc)
    return FetchStatus.ERROR, f"unforeseen failure ({type(exc).__name__})"


def _from_tls(exc: BaseException) -> bool:
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
