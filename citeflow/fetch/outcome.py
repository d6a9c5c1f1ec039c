"""What reading one page returned, and why when it returned nothing."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["FetchOutcome", "FetchStatus"]


class FetchStatus(enum.StrEnum):
    """How a fetch ended. Only `OK` carries text that may be cited."""

    OK = "ok"
    """The page was read and has text."""
    BLOCKED = "blocked"
    """The address, or one it redirected to, is not a public one; nothing was sent there."""
    BAD_URL = "bad_url"
    """Not an http or https address that can be asked for."""
    DNS_ERROR = "dns_error"
    """The host name has no address."""
    CONNECT_ERROR = "connect_error"
    """No connection, or it broke before the answer was complete."""
    PROXY_ERROR = "proxy_error"
    """The configured proxy could not be used, or refused."""
    TLS_ERROR = "tls_error"
    """The certificate or the handshake was refused."""
    TIMEOUT = "timeout"
    """Not read within the total time for one fetch."""
    HTTP_ERROR = "http_error"
    """A status other than 200; `http_status` has it."""
    TOO_MANY_REDIRECTS = "too_many_redirects"
    """More redirects than are followed."""
    TOO_LARGE = "too_large"
    """The body is larger than the cap."""
    TRUNCATED = "truncated"
    """The connection ended before the whole body had arrived."""
    DISALLOWED = "disallowed"
    """The site's robots.txt asks us not to read the page."""
    UNSUPPORTED_TYPE = "unsupported_type"
    """Not text, HTML, XML or PDF."""
    CHALLENGED = "challenged"
    """The site asks for proof that a person is reading (a captcha, a browser check)."""
    CONSENT_WALL = "consent_wall"
    """Only a request for consent to cookies was shown."""
    LOGIN_WALL = "login_wall"
    """The text is for members or subscribers."""
    SOFT_404 = "soft_404"
    """The page says that it does not exist, though its status says that it does."""
    SCRIPT_ONLY = "script_only"
    """The page is an empty shell that scripts would fill."""
    ENCRYPTED = "encrypted"
    """A PDF that wants a password."""
    SCANNED = "scanned"
    """A PDF of images, without text."""
    DECODE_ERROR = "decode_error"
    """The body is not what its headers say (a broken compression stream, say)."""
    MOJIBAKE = "mojibake"
    """The text is unreadable: its character encoding could not be found."""
    EMPTY = "empty"
    """The page was read and holds no usable text."""
    EXTRACT_FAILED = "extract_failed"
    """Extraction crashed or ran out of time on this page."""
    ERROR = "error"
    """An unforeseen failure; the log has it."""


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    """One page read, or the reason why not.

    `text` is the main text, paragraphs as lines, cut at the configured number of characters
    (`truncated` says whether anything was cut). `published_at` is the raw string found on the
    page, `published_on` the day it means (YYYY-MM-DD, blank if unknown) and `date_confidence`
    `high`, `medium`, `low` or blank. `content_sha256` is of `text` in UTF-8, empty when there is
    none. `fetched_at` is a UTC time in seconds since the epoch, `elapsed_ms` the whole time
    spent; a `cached` outcome has the `fetched_at` of when it was read. `stage` names the
    extractor that produced the text. `detail` is a short reason for people, without secrets.
    """

    status: FetchStatus
    url: str
    http_status: int | None = None
    final_url: str = ""
    content_type: str = ""
    charset: str = ""
    title: str = ""
    text: str = ""
    truncated: bool = False
    published_at: str | None = None
    published_on: str = ""
    date_confidence: str = ""
    content_sha256: str = ""
    fetched_at: float = 0.0
    elapsed_ms: float = 0.0
    stage: str = ""
    cached: bool = False
    detail: str = ""

    @property
    def ok(self) -> bool:
        """True when there is text that may be cited."""
        return self.status is FetchStatus.OK
