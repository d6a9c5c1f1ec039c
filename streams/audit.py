"""Findings as events."""

from __future__ import annotations

from datetime import datetime

import orjson

import schemas
from citeflow.findings import Finding

__all__ = ["audit_record"]

MAX_TITLE, MAX_BODY, MAX_EXTRA_BYTES = 500, 4_000, 64_000


def audit_record(
    finding: Finding, *, stage: str, request_id: str, timestamp: datetime
) -> schemas.AuditFinding:
    """The event for a finding. The same finding about the same request has the same id."""
    # Hosts and addresses in a finding come from the web: they are cut to what a person reads.
    extra = dict(finding.extra)
    if len(orjson.dumps(extra, default=str)) > MAX_EXTRA_BYTES:
        extra = {"left_out": "more than a finding holds"}
    return schemas.AuditFinding(
        event_id=schemas.event_id(request_id, f"finding:{stage}", finding.kind, finding.dedup_key),
        timestamp=timestamp,
        source=finding.source,
        kind=finding.kind,
        severity=finding.severity.value,
        title=finding.title[:MAX_TITLE],
        body=finding.body[:MAX_BODY],
        dedup_key=finding.dedup_key[:MAX_TITLE],
        request_id=request_id,
        extra=extra,
    )
