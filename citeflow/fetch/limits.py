"""The limits of reading one page, and what each protects."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CONNECT_LIMITS",
    "EXTRACT_LIMITS",
    "FETCH_LIMITS",
    "HTTP2_LIMITS",
    "POLITE_LIMITS",
    "ConnectLimits",
    "ExtractLimits",
    "FetchLimits",
    "Http2Limits",
    "PageLimits",
    "PoliteLimits",
]


@dataclass(frozen=True, slots=True)
class ConnectLimits:
    """Finding a host and opening a connection to it. Times in seconds."""

    # A server that does not accept within this will rarely answer within the whole fetch's time
    # (10 s by default); giving up early leaves the rest of it to a second address.
    connect: float = 3.0
    # A name with more addresses than this is a large service whose first ones work, or a trap
    # that makes one fetch knock on many doors. All are vetted; only the first ones are tried.
    addresses_tried: int = 4
    # Idle connections serve the next pages of the same site within one search, not longer: a
    # server may have closed an older one, and a request lost to that is a page lost.
    keepalive_seconds: float = 5.0
    keepalive_connections: int = 32


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """One fetch, from the first request to the last byte."""

    # What browsers need for http -> https -> www -> language -> page; more is a loop.
    redirects: int = 5
    # Content codings stacked on one body; servers use one, misconfigured ones two. Each further
    # layer multiplies what a small body can inflate to.
    content_codings: int = 2


@dataclass(frozen=True, slots=True)
class Http2Limits:
    """What one response may cost in HTTP/2 frames; bytes of text have caps of their own."""

    # Handling a frame takes some 50 microseconds of the event loop. Servers that flush early and
    # often send frames of a few hundred bytes; what has more frames than these, plus one for each
    # 128 bytes, is sending frames for their own sake.
    frames: int = 1_000
    bytes_per_frame: int = 128
    # A response has a few of them: settings, window updates, pings, one header block.
    frames_without_text: int = 300
    # In frames that are not of the body; a header block may have 64 kB after decompression.
    bytes_of_others: int = 262_144
    # The frames in what is read at once hold the event loop together.
    read_bytes: int = 16_384


@dataclass(frozen=True, slots=True)
class PageLimits:
    """What one call wants otherwise than the settings say; None: as they say.

    Bytes as sent and again after decompression, characters of text, seconds for the whole
    download once it turns out to be a PDF.
    """

    max_bytes: int | None = None
    max_pdf_bytes: int | None = None
    max_chars: int | None = None
    pdf_seconds: float | None = None
    https_only: bool = False


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """Extraction of the main text, in a worker process. The numbers of the guard are above the
    maxima of 2,261 real pages (19,629 tags, depth 1,439; single tags above 30,000 characters are
    inline images); `benchmarks/hostile.py` shows that known hostile input stays under a second."""

    # Between the second a hostile page takes at most and the patience of a fetch. Longer
    # means a library looping; the worker is killed.
    seconds: float = 5.0
    # Peak use of the largest pages is below 800 MB; what wants more is killed before it makes the
    # machine swap.
    worker_memory_bytes: int = 1_500_000_000
    # libxml2 keeps every name of an element or attribute that it has met; pages of invented names
    # make a worker grow by half a megabyte each. A worker lives for some ten seconds of work.
    jobs_per_worker: int = 500
    # After a job. One that has read ordinary pages holds 150 MB at most.
    worker_resident_bytes: int = 300_000_000
    # The guard, in characters of decoded HTML.
    html_chars: int = 2_000_000
    tags: int = 40_000
    tag_chars: int = 30_000
    # The parsers compare each attribute of a tag with all others. Tags short enough to be
    # harmless are not looked into.
    attributes: int = 256
    plain_tag_chars: int = 1_000
    depth: int = 2_000
    # What the thorough extractors are given, at some 30 microseconds a tag for each: the beginning
    # of a page larger than this holds more text than is kept of one. Of 79 real pages, without
    # their scripts, the largest has 7,093 tags and 270,000 characters.
    costly_tags: int = 10_000
    costly_chars: int = 400_000
    # Above this trafilatura's thorough mode is not asked after its quick one.
    costliest_tags: int = 5_000
    # Below this the first extractor probably missed the text, and the others are asked too.
    short_text_chars: int = 250
    # Letters and digits that make a text: a sentence of a few words, or of a few more ideographs.
    # Less is a button, a spinner or a lone heading.
    word_chars: int = 20
    # Of a PDF: nobody cites page 51 of what a search engine found for its first page, and the
    # characters kept are reached long before.
    pdf_pages: int = 50
    # More unreadable characters than this is a wrong encoding or binary data, not a typing error.
    unreadable_share: float = 0.01


@dataclass(frozen=True, slots=True)
class PoliteLimits:
    """Dealing with one site again and again. Times in seconds."""

    # Sites change their rules seldom; RFC 9309 asks for no more than a day.
    robots_seconds: float = 3600.0
    # Some hundred bytes each for the sites of an hour's searches.
    robots_kept: int = 2000
    # RFC 9309, 2.5: parse at least this much.
    robots_bytes: int = 512_000
    # A part of the time for a page: a site that does not answer for this will not for the page.
    robots_timeout: float = 3.0
    # Before the one repetition when the server names no time: a restarting process is back.
    retry_delay: float = 0.3
    # A site that asks for more is asked again by the next search anyway.
    longest_pause: float = 120.0
    # Pages kept, each at most as large as the text kept of it (8,000 characters).
    cached_pages: int = 1000


CONNECT_LIMITS = ConnectLimits()
FETCH_LIMITS = FetchLimits()
HTTP2_LIMITS = Http2Limits()
POLITE_LIMITS = PoliteLimits()
EXTRACT_LIMITS = ExtractLimits()
