"""What goes to an extraction worker and what comes back.

Kept apart from the extraction itself, so that the program that reads pages never imports the
extraction libraries: only its workers do.
"""

from __future__ import annotations

import datetime
import enum

import msgspec

from citeflow.fetch.content_type import Kind

__all__ = ["ExtractRequest", "Extracted", "Readability"]


class Readability(enum.StrEnum):
    """Whether a body had text that can be read; the values are those of `FetchStatus`."""

    OK = "ok"
    EMPTY = "empty"
    MOJIBAKE = "mojibake"
    CHALLENGED = "challenged"
    CONSENT_WALL = "consent_wall"
    LOGIN_WALL = "login_wall"
    SOFT_404 = "soft_404"
    SCRIPT_ONLY = "script_only"
    ENCRYPTED = "encrypted"
    SCANNED = "scanned"
    DAMAGED = "decode_error"
    UNSUPPORTED = "unsupported_type"


class ExtractRequest(msgspec.Struct, frozen=True):
    """A body as it came, and what its headers said (`charset` blank: nothing).

    `max_chars` is the number of code points of text wanted; publish dates after `today` are not
    believed.
    """

    data: bytes
    kind: Kind
    charset: str
    max_chars: int
    today: datetime.date


class Extracted(msgspec.Struct, frozen=True):
    """What a body says: `text` is blank unless `readability` is OK.

    `charset` is the encoding it was read in, `stage` the extractor that found the text. The
    dates are those of `FetchOutcome`.
    """

    readability: Readability
    text: str = ""
    title: str = ""
    charset: str = ""
    truncated: bool = False
    stage: str = ""
    published_at: str | None = None
    published_on: str = ""
    date_confidence: str = ""
