"""One page over the wire: the request, its redirects, and the body within its caps."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpcore
import httpx

from citeflow.errors import SSRFBlockedError
from citeflow.fetch.content_type import (
    PDF_TYPES,
    SNIFF_BYTES,
    Kind,
    declared_kind,
    parse_content_type,
    sniffed_kind,
)
from citeflow.fetch.inflate import (
    ACCEPT_ENCODING,
    BodyTooLargeError,
    BrokenBodyError,
    Inflater,
    TruncatedBodyError,
)
from citeflow.fetch.limits import FETCH_LIMITS
from citeflow.fetch.outcome import FetchStatus
from citeflow.fetch.politeness import Manners, retry_after_seconds
from citeflow.fetch.proxy import Proxy, refused_credentials
from citeflow.fetch.targets import Policy, Target, check_url, redirect_target
from citeflow.fetch.transport import EXEMPT, PROXY
from citeflow.fetch.walls import is_challenge

if TYPE_CHECKING:
    from citeflow.fetch.transport import GuardedTransport

__all__ = ["Body", "Download", "FetchEndedError"]

_ACCEPT = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,application/pdf;q=0.8,"
    "text/plain;q=0.8,*/*;q=0.1"
)
_TOO_MANY = 429
_PROXY_AUTHENTICATION = 407
# A proxy whose server restarts says one of these.
_PASSING_STATUSES = frozenset({502, 503, 504})
# The statuses that captchas and browser checks are served with, beside 200.
_CHALLENGE_STATUSES = frozenset({401, 403, 405, 429, 503})
# The pages of the known ones are smaller.
_REFUSAL_BYTES = 100_000
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,300})", re.IGNORECASE)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchEndedError(Exception):
    """The fetch ended without a body, as `status` says; the message is for people."""

    def __init__(self, status: FetchStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


_PASSING = (
    FetchEndedError,
    TruncatedBodyError,
    httpcore.ReadError,
    httpcore.WriteError,
    httpcore.RemoteProtocolError,
)


@dataclass(frozen=True, slots=True)
class Body:
    """A body of a kind that can be read, decompressed. `charset` is the header's."""

    data: bytes
    kind: Kind
    charset: str


@dataclass(slots=True)
class Download:
    """One download. What is known of it so far stays readable when it fails.

    `proxy` is not used for the origins that the operator allows.
    """

    transport: GuardedTransport
    policy: Policy
    user_agent: str
    max_bytes: int
    max_pdf_bytes: int
    https_only: bool = False
    proxy: Proxy | None = None
    manners: Manners | None = None
    on_pdf: Callable[[], None] = lambda: None
    _repeated: bool = field(default=False, init=False)
    _retry_after: float | None = field(default=None, init=False)
    final_url: str = field(default="", init=False)
    http_status: int | None = field(default=None, init=False)
    content_type: str = field(default="", init=False)

    async def run(self, url: str) -> Body:
        """Read `url`, following redirects, each checked like the first address.

        Raises `FetchEndedError`, `URLScrapeError`, the errors of `inflate`, and those of the
        transport.
        """
        target = check_url(url, self.policy)
        if (
            self.https_only
            and target.origin.scheme != "https"
            and target.origin not in self.policy.allowed_origins
        ):
            raise SSRFBlockedError("only https is read")
        for _ in range(FETCH_LIMITS.redirects + 1):
            found = await self._visit_twice(target)
            if isinstance(found, Body):
                return found
            target = redirect_target(target, found, self.policy)
        raise FetchEndedError(
            FetchStatus.TOO_MANY_REDIRECTS, f"more than {FETCH_LIMITS.redirects} redirects"
        )

    async def _visit_twice(self, target: Target) -> Body | str:
        """`_visit`, repeated once in a fetch when the failure is one that passes."""
        try:
            return await self._visit(target)
        except _PASSING as exc:
            if self.manners is None or self._repeated or not self._passes(exc):
                raise
            wait = self.manners.wait_before_retry(target, self._retry_after)
            if wait is None:
                raise
            self._repeated = True
            await asyncio.sleep(wait)
        return await self._visit(target)

    def _passes(self, exc: Exception) -> bool:
        if isinstance(exc, FetchEndedError):
            named = self.http_status == _TOO_MANY and self._retry_after is not None
            return exc.status is FetchStatus.HTTP_ERROR and (
                named or self.http_status in _PASSING_STATUSES
            )
        return not isinstance(exc, httpcore.RemoteProtocolError) or "disconnected" in str(exc)

    async def _visit(self, target: Target) -> Body | str:
        """The body of a page, or where it redirects to."""
        turn = self.manners.visit(target) if self.manners else contextlib.nullcontext()
        self.final_url = str(target.url)
        self.http_status = None
        async with turn:
            response = await self._request(target)
            try:
                if response.status_code in _REDIRECTS and "location" in response.headers:
                    return response.headers["location"]
                self._retry_after = retry_after_seconds(response.headers.get("retry-after", ""))
                return await self._body(response)
            finally:
                await response.aclose()

    async def _request(self, target: Target) -> httpx.Response:
        proxy = None if target.listed else self.proxy
        request = httpx.Request(
            "GET",
            target.url,
            headers={
                "User-Agent": self.user_agent,
                "Accept": _ACCEPT,
                "Accept-Encoding": ACCEPT_ENCODING,
            },
            extensions={EXEMPT: target.exempt, PROXY: proxy},
        )
        response = await self.transport.handle_async_request(request)
        if proxy is not None and response.status_code == _PROXY_AUTHENTICATION:
            await response.aclose()
            raise refused_credentials()
        self.http_status = response.status_code
        return response

    async def _body(self, response: httpx.Response) -> Body:
        self.content_type, charset = parse_content_type(response.headers.get("content-type", ""))
        if response.status_code != 200:
            raise await self._refusal(response)
        if declared_kind(self.content_type) is None:
            raise self._unsupported()
        length = response.headers.get("content-length", "")
        cap = max(self.max_bytes, self.max_pdf_bytes) if self._may_be_pdf() else self.max_bytes
        if length.isdecimal() and len(length) < 20 and int(length) > cap:
            raise BodyTooLargeError
        inflater = Inflater(response.headers.get("content-encoding", ""), self.max_bytes)
        sniffed = False
        try:
            async for chunk in response.aiter_raw():
                rest = chunk
                # In small pieces, so that the cap is chosen before much of the body is counted.
                while rest and not sniffed:
                    piece, rest = rest[:SNIFF_BYTES], rest[SNIFF_BYTES:]
                    inflater.feed(piece)
                    if len(inflater.start(SNIFF_BYTES)) == SNIFF_BYTES:
                        kind = self._kind(charset, inflater.start(SNIFF_BYTES))
                        sniffed = True
                        if kind is Kind.PDF and self._may_be_pdf():
                            inflater.raise_cap(self.max_pdf_bytes)
                            self.on_pdf()
                inflater.feed(rest)
        except (httpcore.RemoteProtocolError, httpcore.ReadError) as exc:
            if isinstance(exc, httpcore.RemoteProtocolError) and "peer closed" not in str(exc):
                raise
            raise TruncatedBodyError("the connection ended within the body") from exc
        data = inflater.finish()
        return Body(data, self._kind(charset, data[:SNIFF_BYTES]), charset)

    def _may_be_pdf(self) -> bool:
        # The larger cap is for what is declared as PDF and begins like one, not for either alone.
        return self.content_type in PDF_TYPES

    async def _refusal(self, response: httpx.Response) -> FetchEndedError:
        """Why there is no page: the status, or the browser check that came with it."""
        status = response.status_code
        if status in _CHALLENGE_STATUSES and await self._is_challenge(response):
            return FetchEndedError(
                FetchStatus.CHALLENGED, f"the site asks for proof of a person (status {status})"
            )
        return FetchEndedError(FetchStatus.HTTP_ERROR, f"HTTP status {status}")

    async def _is_challenge(self, response: httpx.Response) -> bool:
        if response.headers.get("cf-mitigated", "").lower() == "challenge":
            return True
        if not self.content_type.startswith("text/html"):
            return False
        inflater = Inflater(response.headers.get("content-encoding", ""), _REFUSAL_BYTES)
        try:
            async for chunk in response.aiter_raw():
                inflater.feed(chunk)
        except (BodyTooLargeError, BrokenBodyError, httpcore.NetworkError, httpcore.ProtocolError):
            pass  # what has come says enough, or nothing
        markup = inflater.start(_REFUSAL_BYTES).decode("utf-8", "replace")
        title = _TITLE.search(markup)
        return is_challenge(title[1] if title else "", markup)

    def _kind(self, charset: str, start: bytes) -> Kind:
        kind = sniffed_kind(self.content_type, charset, start)
        if kind is None:
            raise self._unsupported()
        return kind

    def _unsupported(self) -> FetchEndedError:
        return FetchEndedError(
            FetchStatus.UNSUPPORTED_TYPE,
            f"not text, HTML or PDF (declared as {self.content_type[:80] or 'nothing'})",
        )
