"""What goes to an extraction worker and what comes back.

Kept apart from the extraction itself, so that the program that reads pages never imports the
extraction libraries: only its workers do.
"""

from __future__ import annotations

import enum

import msgspec

from citeflow.fetch.content_type import Kind

__all__ = ["ExtractRequest", "Extracted", "Readability"]


class Readability(enum.StrEnum):
    """Whether a body had text that can be read."""

    OK = "ok"
    EMPTY = "empty"
    MOJIBAKE = "mojibake"


class ExtractRequest(msgspec.Struct, frozen=True):
    """A body as it came, and what its headers said (`charset` blank: nothing).

    `max_chars` is the number of code points of text wanted.
    """

    data: bytes
    kind: Kind
    charset: str
    max_chars: int


class Extracted(msgspec.Struct, frozen=True):
    """What a body says: `text` is blank unless `readability` is OK.

    `charset` is the encoding it was read in, `stage` the extractor that found the text.
    """

    readability: Readability
    text: str
    title: str
    charset: str
    truncated: bool
    stage: str
