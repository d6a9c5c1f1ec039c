"""What a search backend is: something that answers one query, once, and says how that went."""

from __future__ import annotations

import email.utils
import math
import time
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from citeflow.search.outcome import SearchHit, SearchStatus

__all__ = [
    "CHALLENGE_STATUS",
    "BackendAnswer",
    "SearchBackend",
    "parse_retry_after",
    "status_for_http",
]

CHALLENGE_STATUS = 202
"""The HTTP status with which DuckDuckGo sends a challenge instead of results."""

# Longer waits are of no use to a request that lives for minutes, and a hostile engine must not be
# able to park one for ever.
_RETRY_AFTER_CEILING_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class BackendAnswer:
    """One backend's answer to one query.

    `hits` are in the engine's own order. `detail` is a clause for people ("HTTP 403"), without
    addresses or secrets; `retry_after` the seconds the engine asked to wait, None when it did not
    say. `retryable` says whether the same question may get another answer a moment later.
    `unresponsive` are engines behind a metasearch that did not answer it, with its reasons.
    """

    status: SearchStatus
    hits: tuple[SearchHit, ...] = ()
    detail: str = ""
    retry_after: float | None = None
    retryable: bool = True
    unresponsive: tuple[str, ...] = ()


@runtime_checkable
class SearchBackend(Protocol):
    """A search engine behind one method.

    `name` is how the setting `web_research_backends` calls it, `needs` a clause that says what is
    missing when it is not available. `endpoint` names the server asked, so that all searches of
    a process share what is known of it. `retried` says that it may be asked again after a failure
    that may pass, `per_minute_setting` which setting limits the requests a minute.
    """

    name: str
    needs: str
    retried: bool
    per_minute_setting: str

    @property
    def endpoint(self) -> str:
        """The server asked, as the key of its shared state; never shown to anybody."""
        ...

    def available(self) -> bool:
        """True when it can be asked: installed and configured. Sends nothing."""
        ...

    async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
        """At most `k` hits for `query`, within `timeout` seconds per attempt.

        `query` is not blank and holds no NUL and no surrogates. Failures are answers: raises
        nothing but `CancelledError`.
        """
        ...

    async def aclose(self) -> None:
        """Release connections. The backend may be used again afterwards."""
        ...


def status_for_http(status_code: int) -> SearchStatus:
    """What an HTTP status other than 200 says about a search.

    202 is DuckDuckGo's challenge, 418 and 429 ask for fewer requests, 4xx refuse, 5xx are the
    engine's own failure; anything else (1xx to 3xx) is no answer that can be read.
    """
    match status_code:
        case _ if status_code == CHALLENGE_STATUS:
            return SearchStatus.CHALLENGED
        case 418 | 429:
            return SearchStatus.RATE_LIMITED
        case _ if 400 <= status_code < 500:
            return SearchStatus.BLOCKED
        case _ if status_code >= 500:
            return SearchStatus.UNREACHABLE
        case _:
            return SearchStatus.UNAVAILABLE


def parse_retry_after(value: str | None, *, now: float | None = None) -> float | None:
    """Seconds from a `Retry-After` header (RFC 9110 section 10.2.3: seconds or a date).

    None when it is absent or malformed; a date in the past is 0; never more than a day. `now` is
    a time in seconds since the epoch, by default the current one.
    """
    text = (value or "").strip()
    if not text:
        return None
    try:
        seconds = float(text) if text.isascii() and text.isdigit() else _until(text, now)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), _RETRY_AFTER_CEILING_SECONDS)


def _until(http_date: str, now: float | None) -> float:
    at = email.utils.parsedate_to_datetime(http_date).timestamp()
    return at - (time.time() if now is None else now)
