"""One bounded GET of a JSON API, for the backends that an operator configures.

Such an address is configured, not found on a page, so the address guard of page fetches does not
apply to it: it may well be on localhost. For the same reason nothing but its own answer is
followed: no redirects, no ambient proxies.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from citeflow.search.backend import BackendAnswer
from citeflow.search.outcome import SearchStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["JsonApi", "JsonReply", "unusable"]

# An answer of 50 results is about 60 kB. The cap bounds memory against a proxy gone wrong, and
# the time the event loop spends on parsing it (about 10 ms).
_MAX_BODY_BYTES = 2_000_000

# Enough of a refusal to recognise it by.
_MAX_ERROR_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class JsonReply:
    """What came back: with HTTP 200 the whole body, otherwise the beginning of it."""

    status_code: int
    headers: httpx.Headers
    body: bytes


class JsonApi:
    """A client that turns every failure of the exchange into an answer.

    `setting` is the one that is named when what it holds cannot be sent.
    """

    def __init__(self, setting: str) -> None:
        self._setting = setting
        self._client: httpx.AsyncClient | None = None

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        timeout: float,
    ) -> JsonReply | BackendAnswer:
        """The reply, or the failure as an answer. Raises nothing but `CancelledError`."""
        try:
            async with asyncio.timeout(timeout):
                return await self._get(url, params, headers, timeout)
        except (TimeoutError, httpx.TimeoutException):
            return BackendAnswer(SearchStatus.TIMEOUT, detail=f"no answer within {timeout:.3g} s")
        except httpx.ConnectError:
            return BackendAnswer(SearchStatus.UNREACHABLE, detail="no connection")
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL, ValueError):
            return unusable(f"{self._setting} cannot be asked for")
        except httpx.TransportError as exc:
            return BackendAnswer(
                SearchStatus.UNREACHABLE, detail=f"the exchange broke off ({type(exc).__name__})"
            )

    async def aclose(self) -> None:
        """Close the connections; the client may be used again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _get(
        self, url: str, params: Mapping[str, str], headers: Mapping[str, str], timeout: float
    ) -> JsonReply | BackendAnswer:
        if self._client is None:
            self._client = httpx.AsyncClient(
                trust_env=False, follow_redirects=False, verify=_tls_context()
            )
        # Unencoded, so that the cap on what is received is a cap on what is kept.
        asked = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        async with self._client.stream(
            "GET", url, params=dict(params), headers=asked, timeout=timeout
        ) as response:
            status_code = response.status_code
            if status_code != 200:
                body = await _read(response, _MAX_ERROR_BYTES)
                return JsonReply(status_code, response.headers, body)
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                return unusable("its answer is compressed against our request")
            body = await _read(response, _MAX_BODY_BYTES + 1)
            if len(body) > _MAX_BODY_BYTES:
                return unusable("its answer is larger than the cap")
            return JsonReply(status_code, response.headers, body)


def unusable(detail: str) -> BackendAnswer:
    """The answer of a backend that must be set up differently, or cannot be read."""
    return BackendAnswer(SearchStatus.UNAVAILABLE, detail=detail, retryable=False)


@functools.cache
def _tls_context() -> ssl.SSLContext:
    # Reading the certificates takes 20 ms, too long to do for every client.
    return httpx.create_ssl_context(trust_env=False)


async def _read(response: httpx.Response, limit: int) -> bytes:
    """The first `limit` bytes of the body as sent, or all of it."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) >= limit:
            break
    return bytes(body[:limit])
