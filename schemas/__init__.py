"""The event contracts: one record type per topic, and how they are read and written."""

from schemas.codec import EventError, decode, encode
from schemas.ids import context_event_id, derived_request_id, event_id
from schemas.origin import Origin
from schemas.records import (
    AuditFinding,
    ContextOutcome,
    ContextReady,
    Counts,
    DropRecord,
    EventRejected,
    ExcerptRecord,
    Hit,
    JoinDue,
    Link,
    PageFetched,
    PostLink,
    Provenance,
    Record,
    SearchHits,
    SourceRecord,
    Timings,
    TopicRequested,
)

__all__ = [
    "AuditFinding",
    "ContextOutcome",
    "ContextReady",
    "Counts",
    "DropRecord",
    "EventError",
    "EventRejected",
    "ExcerptRecord",
    "Hit",
    "JoinDue",
    "Link",
    "Origin",
    "PageFetched",
    "PostLink",
    "Provenance",
    "Record",
    "SearchHits",
    "SourceRecord",
    "Timings",
    "TopicRequested",
    "context_event_id",
    "decode",
    "derived_request_id",
    "encode",
    "event_id",
]
