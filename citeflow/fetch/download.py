"""One page over the wire: the request, its redirects, and the body within its caps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from citeflow.fetch.content_type import (
    SNIFF_BYTES,
    Kind,
    declared_kind,
    parse_content_type,
    sniffed_kind,
)
from citeflow.fetch.inflate import ACCEPT_ENCODING, BodyTooLargeError, Inflater
from citeflow.fetch.limits import FETCH_LIMITS
from citeflow.fetch.outcome import FetchStatus
from citeflow.fetch.targets import Policy, Target, check_url, redirect_target
from citeflow.fetch.transport import EXEMPT

if TYPE_CHECKING:
    from citeflow.fetch.transport import GuardedTransport

__all__ = ["Body", "Download", "FetchEndedError"]

_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,text/plain;q=0.8,*/*;q=0.1"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchEndedError(Exception):
    """The fetch ended without a body, as `status` says; the message is for people."""

    def __init__(self, status: FetchStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class Body:
    """A body of a kind that can be read, decompressed. `charset` is the header's."""

    data: bytes
    kind: Kind
    charset: str


@dataclass(slots=True)
class Download:
    """One download. What is known of it so far stays readable when it fails."""

    transport: GuardedTransport
    policy: Policy
    user_agent: str
    max_bytes: int
    final_url: str = field(default="", init=False)
    http_status: int | None = field(default=None, init=False)
    content_type: str = field(default="", init=False)

    async def run(self, url: str) -> Body:
        """Read `url`, following redirects, each checked like the first address.

        Raises `FetchEndedError`, `URLScrapeError`, the errors of `inflate`, and those of the
        transport.
        """
        target = check_url(url, self.policy)
        for _ in range(FETCH_LIMITS.redirects + 1):
            response = await self._request(target)
            try:
                if response.status_code not in _REDIRECTS or "location" not in response.headers:
                    return await self._body(response)
            finally:
                await response.aclose()
            target = redirect_target(target, response.headers["location"], self.policy)
        raise FetchEndedError(
            FetchStatus.TOO_MANY_REDIRECTS, f"more than {FETCH_LIMITS.redirects} redirects"
        )

    async def _request(self, target: Target) -> httpx.Response:
        self.final_url = str(target.url)
        self.http_status = None
        request = httpx.Request(
            "GET",
            target.url,
            headers={
                "User-Agent": self.user_agent,
                "Accept": _ACCEPT,
                "Accept-Encoding": ACCEPT_ENCODING,
            },
            extensions={EXEMPT: target.exempt},
        )
        response = await self.transport.handle_async_request(request)
        self.http_status = response.status_code
        return response

    async def _body(self, response: httpx.Response) -> Body:
        if response.status_code != 200:
            raise FetchEndedError(FetchStatus.HTTP_ERROR, f"HTTP status {response.status_code}")
        self.content_type, charset = parse_content_type(response.headers.get("content-type", ""))
        if declared_kind(self.content_type) is None:
            raise self._unsupported()
        length = response.headers.get("content-length", "")
        if length.isdecimal() and len(length) < 20 and int(length) > self.max_bytes:
            raise BodyTooLargeError
        inflater = Inflater(response.headers.get("content-encoding", ""), self.max_bytes)
        sniffed = False
        async for chunk in response.aiter_raw():
            inflater.feed(chunk)
            if not sniffed and len(inflater.start(SNIFF_BYTES)) == SNIFF_BYTES:
                self._kind(charset, inflater.start(SNIFF_BYTES))
                sniffed = True
        data = inflater.finish()
        return Body(data, self._kind(charset, data[:SNIFF_BYTES]), charset)

    def _kind(self, charset: str, start: bytes) -> Kind:
        kind = sniffed_kind(self.content_type, charset, start)
        if kind is None:
            raise self._unsupported()
        return kind

    def _unsupported(self) -> FetchEndedError:
        return FetchEndedError(
            FetchStatus.UNSUPPORTED_TYPE,
            f"the page is not text or HTML (declared as {self.content_type[:80] or 'nothing'})",
        )
