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
    UNSUPPORTED_TYPE = "unsupported_type"
    """Not text, HTML or XML."""
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
    page. `content_sha256` is of `text` in UTF-8, empty when there is none. `fetched_at` is a
    UTC time in seconds since the epoch, `elapsed_ms` the whole time spent. `stage` names the
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
    content_sha256: str = ""
    fetched_at: float = 0.0
    elapsed_ms: float = 0.0
    stage: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        """True when there is text that may be cited."""
        return self.status is FetchStatus.OK
