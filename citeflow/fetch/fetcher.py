"""Read pages: address in, outcome out. Every failure is an outcome."""

from __future__ import annotations

import asyncio
import datetime
import functools
import hashlib
import logging
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import anyio.lowlevel
import httpcore
import msgspec

from citeflow.errors import URLScrapeError
from citeflow.fetch.download import Body, Download
from citeflow.fetch.exchange import Extracted, ExtractRequest, Readability
from citeflow.fetch.failures import failure_of
from citeflow.fetch.limits import EXTRACT_LIMITS, POLITE_LIMITS, PageLimits
from citeflow.fetch.network import Resolver, resolve_host
from citeflow.fetch.outcome import FetchOutcome, FetchStatus
from citeflow.fetch.politeness import Hosts, Manners, RobotsRules
from citeflow.fetch.proxy import Proxy, parse_proxy
from citeflow.fetch.sharing import Flights, PageCache
from citeflow.fetch.targets import Policy, Target, check_url, parse_origins
from citeflow.fetch.transport import GuardedTransport
from citeflow.fetch.user_agent import build_crawler_ua
from citeflow.quality.urls import canonical_url
from citeflow.workers import WorkerPool

if TYPE_CHECKING:
    from types import TracebackType

    from citeflow.settings import SiteConfig

__all__ = ["PageFetcher"]

logger = logging.getLogger(__name__)

_AS_SETTINGS = PageLimits()
# Beyond the time for a download, for its extraction and the wait for a worker.
_PATIENCE = 6 * EXTRACT_LIMITS.seconds
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
        max_worker_bytes=EXTRACT_LIMITS.worker_resident_bytes,
        memory_limit_bytes=EXTRACT_LIMITS.worker_memory_bytes,
    )


class PageFetcher:
    """Reads pages of the public web, and of the origins the operator allows.

        async with PageFetcher(site_config) as fetcher:
            outcome = await fetcher.fetch("https://example.org/page")

    One fetcher serves any number of concurrent tasks of one event loop and keeps connections for
    the next page of a site. Text is extracted in worker processes shared by the whole program.
    `resolve` finds the addresses of a host and `dial` connects to one address; the defaults are
    the system's. `cache_setting` names the setting that says for how long pages are kept.
    """

    def __init__(
        self,
        site_config: SiteConfig,
        *,
        resolve: Resolver = resolve_host,
        dial: httpcore.AsyncNetworkBackend | None = None,
        cache_setting: str = "fetch_page_cache_seconds",
    ) -> None:
        self._site_config = site_config
        self._cache_setting = cache_setting
        self._transport = GuardedTransport(resolve=resolve, dial=dial)
        self._hosts = Hosts()
        self._robots = RobotsRules(self._robots_txt)
        self._flights = Flights()
        self._starting = asyncio.Lock()
        self._cache = PageCache()

    async def __aenter__(self) -> Self:
        _workers().warm(1)  # it starts while the first page is on its way
        # Loads what httpcore would load at the first connection: some 40 ms of the event loop,
        # better taken before pages are under way.
        await anyio.lowlevel.checkpoint()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._robots.aclose()
        await self._transport.aclose()

    async def fetch(
        self, url: str, *, timeout: float | None = None, limits: PageLimits = _AS_SETTINGS
    ) -> FetchOutcome:
        """Read one page; never raises, except for its own cancellation.

        `timeout` in seconds bounds the whole download, from the wait for a turn at the host to
        the last byte (default: `web_research_fetch_timeout_seconds`); `limits` replaces other
        settings for this call. Extraction has a bound of its own, from when a worker takes the
        page. The same page asked for at the same time is read once.
        """
        async with self._starting:
            # One start for each turn of the loop: a thousand at once would hold it for as long as
            # all their first steps take together.
            await asyncio.sleep(0)
        config = self._site_config
        if timeout is None:
            timeout = config.get_float("web_research_fetch_timeout_seconds")
        max_chars = _first(limits.max_chars, config.get_int("web_research_max_content_chars"))
        kept = config.get_float(self._cache_setting)
        key = (canonical_url(url), limits, max_chars) if kept else None
        if key and self._may_be_read(url):
            page = self._cache.get(key, not_before=time.time() - kept)
            if page is not None:
                return replace(page, url=url)
        try:
            async with asyncio.timeout(max(timeout, limits.pdf_seconds or 0) + _PATIENCE):
                page = await self._flights.join(
                    (url, limits, max_chars), lambda: self._fetch(url, timeout, limits, max_chars)
                )
        except TimeoutError:  # of another call's fetch, which has more time than this one
            status, detail = FetchStatus.TIMEOUT, "the page was not read in time"
            return FetchOutcome(status, url, fetched_at=time.time(), detail=detail)
        if key:
            self._cache.put(key, page)
        return page

    async def _fetch(
        self, url: str, timeout: float, limits: PageLimits, max_chars: int
    ) -> FetchOutcome:
        started = time.monotonic()
        config = self._site_config
        download = self._download(
            _first(limits.max_bytes, config.get_int("fetch_max_body_bytes")),
            _first(limits.max_pdf_bytes, config.get_int("fetch_max_pdf_bytes")),
        )
        download.https_only = limits.https_only
        outcome = FetchOutcome(FetchStatus.ERROR, url, fetched_at=time.time())
        try:
            async with asyncio.timeout(timeout) as deadline:
                now = asyncio.get_running_loop().time()
                if limits.pdf_seconds is not None:
                    ends = now + limits.pdf_seconds
                    download.on_pdf = functools.partial(deadline.reschedule, ends)
                download.manners = self._manners(now + timeout)
                download.proxy = self._proxy()
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

    def _policy(self) -> Policy:
        return Policy(
            parse_origins(self._site_config.get_str("fetch_allowed_internal_origins")),
            self._site_config.get_bool("url_scraper_allow_internal_ips"),
        )

    def _proxy(self) -> Proxy | None:
        """Raises `ProxyError` for a setting that cannot be read."""
        config = self._site_config
        tunnel_http = config.get_bool("fetch_proxy_tunnels_http")
        return parse_proxy(config.get_str("fetch_proxy_url"), tunnel_http=tunnel_http)

    def _may_be_read(self, url: str) -> bool:
        """False when the settings of now refuse what those of earlier may have allowed."""
        try:
            check_url(url, self._policy())
        except URLScrapeError:
            return False
        return True

    def _download(self, max_bytes: int, max_pdf_bytes: int) -> Download:
        agent = build_crawler_ua(self._site_config)
        return Download(self._transport, self._policy(), agent, max_bytes, max_pdf_bytes)

    def _manners(self, until: float) -> Manners:
        config = self._site_config
        return Manners(
            self._hosts,
            self._robots if config.get_bool("fetch_respect_robots") else None,
            at_once=config.get_int("fetch_host_concurrency"),
            interval=config.get_int("fetch_host_interval_ms") / 1000,
            until=until,
        )

    async def _robots_txt(self, target: Target) -> str:
        """The robots.txt of a target's site, blank when it cannot be had."""
        download = self._download(POLITE_LIMITS.robots_bytes, 0)
        try:
            download.proxy = self._proxy()
            async with asyncio.timeout(POLITE_LIMITS.robots_timeout):
                body = await download.run(str(target.url.copy_with(raw_path=b"/robots.txt")))
        except Exception as exc:  # noqa: BLE001 - whatever it is, the page itself will show it
            logger.debug("no robots.txt: %s", type(exc).__name__)
            return ""
        return body.data.decode("utf-8", "replace")


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
