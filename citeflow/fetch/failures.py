"""What an exception of a fetch means: the one table from exceptions to statuses."""

from __future__ import annotations

import ssl

import httpcore
import httpx

from citeflow.errors import SSRFBlockedError, URLScrapeError
from citeflow.fetch.download import FetchEndedError
from citeflow.fetch.inflate import BodyTooLargeError, BrokenBodyError, TruncatedBodyError
from citeflow.fetch.network import NameNotFoundError
from citeflow.fetch.outcome import FetchStatus
from citeflow.fetch.politeness import DisallowedError, HostPausedError
from citeflow.fetch.proxy import ProxyError
from citeflow.workers import WorkerError, WorkerTimeout

__all__ = ["failure_of"]

# In this order: the first class that an exception is an instance of decides.
_FAILURES: tuple[tuple[type[Exception], FetchStatus, str], ...] = (
    (SSRFBlockedError, FetchStatus.BLOCKED, ""),
    (URLScrapeError, FetchStatus.BAD_URL, ""),
    (httpx.InvalidURL, FetchStatus.BAD_URL, "the URL cannot be parsed"),
    (DisallowedError, FetchStatus.DISALLOWED, "the site's robots.txt asks us not to read it"),
    (HostPausedError, FetchStatus.HTTP_ERROR, "the site has asked to be left alone for now"),
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
    if isinstance(exc, ProxyError):
        return FetchStatus.PROXY_ERROR, str(exc)
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
