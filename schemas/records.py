"""One record type per topic.

Times are UTC and written as RFC 3339. Everything a later stage decides from travels in the
records, so that handling an event again gives the same bytes.
"""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

__all__ = [
    "MAX_RESULTS",
    "AuditFinding",
    "ContextOutcome",
    "ContextReady",
    "Counts",
    "DropRecord",
    "EventRejected",
    "ExcerptRecord",
    "Hit",
    "JoinDue",
    "Link",
    "PageFetched",
    "PostLink",
    "Provenance",
    "Record",
    "SearchHits",
    "SourceRecord",
    "Timings",
    "TopicRequested",
]

# The largest record is the state of a join. At four bytes a character, twenty results have at most
# 560 kB of page text (7,000 characters each), 160 kB of addresses, 80 kB of snippets and 40 kB of
# titles: 0.85 MB, below the 1 MB that brokers accept.
MAX_RESULTS = 20

# The look-ahead refuses a trailing newline, before which `$` matches in Python.
REQUEST_ID_PATTERN = r"^[A-Za-z0-9._:@/+=-]+(?!\n)$"

RequestId = Annotated[str, Meta(min_length=1, max_length=128, pattern=REQUEST_ID_PATTERN)]
Timestamp = Annotated[datetime, Meta(tz=True)]
Rank = Annotated[int, Meta(ge=0, lt=MAX_RESULTS, description="0-based place in the results")]


class Record(Struct, kw_only=True):
    """What all events share: `schema`, a name and a major version."""

    SCHEMA: ClassVar[str]

    schema: str

    @property
    def key(self) -> bytes:
        """The record key on its topic."""
        raise TypeError(f"{type(self).__name__} has no key")


class TopicRequested(Record, kw_only=True):
    """A topic to research. Only `topic` is required.

    `request_id` defaults to the record's key, or else is derived from the record's position.
    `options` are settings for this request alone. `deadline` is the time at which the context
    is emitted whatever has arrived; `requested_at` defaults to the record's timestamp.
    """

    SCHEMA: ClassVar[str] = "citeflow.topics.requested/1"

    topic: Annotated[str, Meta(min_length=1, max_length=1000)]
    schema: str = SCHEMA
    request_id: RequestId | None = None
    category: Annotated[str, Meta(max_length=200)] = "technology"
    max_results: Annotated[int, Meta(ge=1, le=MAX_RESULTS)] = 5
    options: dict[str, str | bool | int | float] = field(default_factory=dict)
    requested_at: Timestamp | None = None
    deadline: Timestamp | None = None

    @property
    def key(self) -> bytes:
        """The request id."""
        return (self.request_id or "").encode()


class Hit(Struct, kw_only=True, frozen=True):
    """One search result, in the engine's order."""

    rank: Rank
    title: str
    url: str
    snippet: str


class Provenance(Struct, kw_only=True, frozen=True):
    """Which backend answered which query, and who else was asked."""

    backend: str | None = None
    cached: bool = False
    query_used: str = ""
    backends_tried: tuple[str, ...] = ()
    challenged: bool = False


class Link(Struct, kw_only=True, frozen=True):
    """A curated reference."""

    title: str
    url: str


class PostLink(Struct, kw_only=True, frozen=True):
    """A published post of the operator's own site."""

    title: str
    slug: str


class SearchHits(Record, kw_only=True):
    """What the search for a request returned, also when that is nothing or a failure.

    `settings` are the settings in force that differ from their defaults; judging and rendering
    use them and no others. `deadline_at` is when the context is due whatever has arrived.
    """

    SCHEMA: ClassVar[str] = "citeflow.search.hits/1"

    event_id: str
    request_id: RequestId
    topic: str
    category: str
    max_results: int
    requested_at: Timestamp
    searched_at: Timestamp
    deadline_at: Timestamp
    status: str
    pages_wanted: bool
    hits: Annotated[tuple[Hit, ...], Meta(max_length=MAX_RESULTS)]
    schema: str = SCHEMA
    note: str | None = None
    retry_after: float | None = None
    provenance: Provenance = field(default_factory=Provenance)
    references: tuple[Link, ...] = ()
    internal_links: tuple[PostLink, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> bytes:
        """The request id."""
        return self.request_id.encode()


class PageFetched(Record, kw_only=True):
    """One hit's page, read or not, and why not.

    `text` is the main text cut at `web_research_max_content_chars`; `content_sha256` is of that
    text in UTF-8. `published_at` is the date as the page writes it, `published_on` the day it means
    (YYYY-MM-DD, blank if unknown) and `date_confidence` `high`, `medium`, `low` or blank. `cached`:
    the page was read for an earlier request, at `fetched_at`.
    """

    SCHEMA: ClassVar[str] = "citeflow.pages.fetched/1"

    event_id: str
    request_id: RequestId
    rank: Rank
    url: str
    status: str
    fetched_at: Timestamp
    schema: str = SCHEMA
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
    cached: bool = False
    content_sha256: str = ""
    elapsed_ms: float = 0.0
    stage: str = ""
    detail: str = ""

    @property
    def key(self) -> bytes:
        """The request id."""
        return self.request_id.encode()


class ContextOutcome(enum.StrEnum):
    """How a request's web research ended."""

    COMPLETE = "complete"
    """Every page arrived and at least one web source is in the corpus."""
    DEGRADED = "degraded"
    """The deadline passed first, or no result survived; `reasons` says which."""
    EMPTY = "empty"
    """The search answered that nothing matches."""
    BLOCKED = "blocked"
    """The search engine was reached and refused: challenged, rate limited or blocked."""
    FAILED = "failed"
    """The search engine gave no answer: timeout, unreachable or unavailable."""


class ExcerptRecord(Struct, kw_only=True, frozen=True):
    """Where a part of a page that the corpus shows stands in the page's text.

    Characters (code points) `start` to `end` of the text whose UTF-8 has the SHA-256
    `text_sha256`; that text is on `pages.fetched`.
    """

    start: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=0)]
    text_sha256: str


class SourceRecord(Struct, kw_only=True, frozen=True):
    """A web source of the corpus, in corpus order, and why it stands there.

    The date and `cached` are those of its page (see `PageFetched`); `excerpts` are the parts of it
    that are shown, in their order.
    """

    rank: int
    title: str
    url: str
    snippet: str
    domain: str
    domain_credibility: float
    snippet_quality: float
    recency_score: float
    uniqueness_score: float
    search_rank_score: float
    overall_score: float
    content_sha256: str = ""
    published_on: str = ""
    date_confidence: str = ""
    cached: bool = False
    excerpts: tuple[ExcerptRecord, ...] = ()


class DropRecord(Struct, kw_only=True, frozen=True):
    """A search result that is not in the corpus, and why."""

    rank: int
    title: str
    url: str
    reason: str
    detail: str = ""


class Counts(Struct, kw_only=True, frozen=True):
    """How many results there were at each step."""

    searched: int
    pages_arrived: int
    pages_read: int
    sources: int
    dropped: int


class Timings(Struct, kw_only=True, frozen=True):
    """When things happened, all taken from events."""

    requested_at: Timestamp
    searched_at: Timestamp
    deadline_at: Timestamp
    last_page_at: Timestamp | None = None


class ContextReady(Record, kw_only=True):
    """The answer to a request: a citation-ready corpus, or the reason why there is none.

    `pages` are the event ids of the `pages.fetched` records that were judged, by rank.
    """

    SCHEMA: ClassVar[str] = "citeflow.context.ready/1"

    event_id: str
    request_id: RequestId
    topic: str
    category: str
    outcome: ContextOutcome
    reasons: tuple[str, ...]
    search_status: str
    corpus: str
    counts: Counts
    timings: Timings
    settings_digest: str
    schema: str = SCHEMA
    note: str | None = None
    provenance: Provenance = field(default_factory=Provenance)
    sources: tuple[SourceRecord, ...] = ()
    dropped: tuple[DropRecord, ...] = ()
    references: tuple[Link, ...] = ()
    internal_links: tuple[PostLink, ...] = ()
    pages: tuple[str, ...] = ()

    @property
    def key(self) -> bytes:
        """The request id."""
        return self.request_id.encode()


class AuditFinding(Record, kw_only=True):
    """Something worth an operator's attention. `timestamp` is that of the event it is about."""

    SCHEMA: ClassVar[str] = "citeflow.audit.findings/1"

    event_id: str
    timestamp: Timestamp
    source: str
    kind: str
    severity: str
    title: str
    body: str
    dedup_key: str
    schema: str = SCHEMA
    request_id: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> bytes:
        """Kind and source: what is remembered of their alerts has one owner."""
        return f"{self.kind}|{self.source}".encode()


class AlertDue(Record, kw_only=True):
    """A tick of the clock for the alerts of one kind and source."""

    SCHEMA: ClassVar[str] = "citeflow.alerts.due/1"

    kind: str
    source: str
    due_at: Timestamp
    subject: str = ""
    slot: int = 0
    schema: str = SCHEMA

    @property
    def key(self) -> bytes:
        """Kind and source."""
        return f"{self.kind}|{self.source}".encode()


class JoinDue(Record, kw_only=True):
    """A tick of the join's clock for one request: its deadline or its expiry has come."""

    SCHEMA: ClassVar[str] = "citeflow.join.due/1"

    request_id: RequestId
    due_at: Timestamp
    schema: str = SCHEMA

    @property
    def key(self) -> bytes:
        """The request id."""
        return self.request_id.encode()


class EventRejected(Record, kw_only=True):
    """An event that could not be handled: where it stood, what it held, what was wrong.

    `value` holds at most the first 256 KiB (`value_size` is the whole size, `value_sha256` of
    the whole). Bytes are written as base64.
    """

    SCHEMA: ClassVar[str] = "citeflow.events.rejected/1"

    event_id: str
    stage: str
    error: str
    topic: str
    partition: int
    offset: int
    timestamp: Timestamp
    value: bytes
    value_size: int
    value_sha256: str
    schema: str = SCHEMA
    record_key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def key(self) -> bytes:
        """The rejected event's own key, or its position."""
        return self.record_key or f"{self.topic}-{self.partition}-{self.offset}".encode()
