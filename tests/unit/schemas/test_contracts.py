"""What the contracts promise: round trips, documents that fit, ids that repeat."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from schemas.documents import RECORD_TYPES, documents
from streams.topics import TOPICS

T0 = datetime(2026, 1, 1, tzinfo=UTC)

EXAMPLES: dict[str, schemas.Record] = {
    "topics.requested": schemas.TopicRequested(topic="x", request_id="r", deadline=T0),
    "search.hits": schemas.SearchHits(
        event_id="e", request_id="r", topic="x", category="c", max_results=5, requested_at=T0,
        searched_at=T0, deadline_at=T0, status="ok", pages_wanted=True,
        hits=(schemas.Hit(rank=0, title="t", url="https://a.example", snippet="s"),),
        references=(schemas.Link(title="t", url="https://b.example"),),
        internal_links=(schemas.PostLink(title="t", slug="s"),), settings={"a": "b"},
    ),
    "pages.fetched": schemas.PageFetched(
        event_id="e", request_id="r", rank=0, url="https://a.example", status="ok", fetched_at=T0,
        text="words", content_sha256="0" * 64, published_at="1 May 2024",
        published_on="2024-05-01", date_confidence="high", cached=True,
    ),
    "context.ready": schemas.ContextReady(
        event_id="e", request_id="r", topic="x", category="c",
        outcome=schemas.ContextOutcome.COMPLETE, reasons=(), search_status="ok", corpus="c",
        counts=schemas.Counts(searched=1, pages_arrived=1, pages_read=1, sources=0, dropped=1),
        timings=schemas.Timings(requested_at=T0, searched_at=T0, deadline_at=T0),
        settings_digest="0" * 64,
        dropped=(schemas.DropRecord(rank=0, title="t", url="u", reason="thin_snippet"),),
        sources=(
            schemas.SourceRecord(
                rank=0, title="t", url="u", snippet="s", domain="d", domain_credibility=1.0,
                snippet_quality=1.0, recency_score=1.0, uniqueness_score=1.0,
                search_rank_score=1.0, overall_score=1.0, published_on="2024-05-01",
                date_confidence="low", cached=True,
                excerpts=(schemas.ExcerptRecord(start=0, end=5, text_sha256="0" * 64),),
            ),
        ),
    ),
    "audit.findings": schemas.AuditFinding(
        event_id="e", timestamp=T0, source="s", kind="k", severity="warn", title="t", body="b",
        dedup_key="d", extra={"n": [1, {"a": None}]},
    ),
    "join.due": schemas.JoinDue(request_id="r", due_at=T0),
    "alerts.due": schemas.AlertDue(kind="k", source="s", due_at=T0, slot=1),
    "events.rejected": schemas.EventRejected(
        event_id="e", stage="search", error="no", topic="topics.requested", partition=0, offset=1,
        timestamp=T0, value=b"\xff\x00", value_size=2, value_sha256="0" * 64, record_key=b"\xfe",
        headers=(("h", b"\x00"),),
    ),
}  # fmt: skip
EXAMPLES["context.replayed"] = EXAMPLES["context.ready"]


def test_every_topic_has_a_record_and_a_document() -> None:
    """The topic table, the record types and the documents name the same topics."""
    assert {name: spec.record for name, spec in TOPICS.items()} == dict(RECORD_TYPES)
    assert documents().keys() == {f"{topic}.schema.json" for topic in TOPICS} | {"asyncapi.json"}


@pytest.mark.parametrize("topic", TOPICS)
def test_records_read_back_and_fit_their_schema(topic: str) -> None:
    """An encoded record decodes to itself and is valid under the published JSON Schema."""
    record = EXAMPLES[topic]
    data = schemas.encode(record)
    assert schemas.decode(data, RECORD_TYPES[topic]) == record
    schema = json.loads(documents()[f"{topic}.schema.json"])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(data), schema)


def test_records_from_before_dates_and_excerpts_were_on_them_are_read() -> None:
    """A log that is older than a field decodes with the field's default."""
    added = {"published_on", "date_confidence", "cached", "excerpts"}
    for topic in ("pages.fetched", "context.ready"):
        written = json.loads(schemas.encode(EXAMPLES[topic]))
        for each in (written, *written.get("sources", ())):
            for name in added & each.keys():
                del each[name]
        read = schemas.decode(json.dumps(written).encode(), RECORD_TYPES[topic])
        for record in (read, *getattr(read, "sources", ())):
            found = {name: getattr(record, name) for name in added if hasattr(record, name)}
            defaults = {"published_on": "", "date_confidence": "", "cached": False, "excerpts": ()}
            assert found == {name: defaults[name] for name in found}


def test_unknown_fields_are_passed_over_and_other_majors_are_not() -> None:
    """A newer producer of the same major version can be read, one of another cannot."""
    known = b'{"topic": "x", "schema": "citeflow.topics.requested/1.4", "new": {"a": [1]}}'
    assert schemas.decode(known, schemas.TopicRequested).topic == "x"
    for name in ("citeflow.topics.requested/2", "citeflow.topics.requested/10", "other/1", ""):
        with pytest.raises(schemas.EventError, match="schema"):
            schemas.decode(
                json.dumps({"topic": "x", "schema": name}).encode(), schemas.TopicRequested
            )


@given(st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["topic", "options", "deadline", "x"]), inner, max_size=4),
    max_leaves=12,
))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_json_is_read_or_refused(value: Any) -> None:
    """No JSON value does anything but decode or raise EventError."""
    with contextlib.suppress(schemas.EventError):
        record = schemas.decode(json.dumps(value).encode(), schemas.TopicRequested)
        assert 1 <= len(record.topic) <= 1000


@given(st.text(), st.text(), st.lists(st.text(), max_size=3), st.text(), st.text())
def test_ids_tell_their_parts_apart(
    request: str, stage: str, parts: list[str], other_request: str, other_stage: str
) -> None:
    """The same parts give the same id, other parts another one, also where they join equally."""
    first = schemas.event_id(request, stage, *parts)
    assert first == schemas.event_id(request, stage, *parts)
    if (request, stage) != (other_request, other_stage):
        assert first != schemas.event_id(other_request, other_stage, *parts)
    assert schemas.event_id("a", "bc") != schemas.event_id("ab", "c")
