"""Findings as events."""

from __future__ import annotations

from datetime import datetime

import schemas
from citeflow.findings import Finding

__all__ = ["audit_record"]


def audit_record(
    finding: Finding, *, stage: str, request_id: str, timestamp: datetime
) -> schemas.AuditFinding:
    """The event for a finding. The same finding about the same request has the same id."""
    return schemas.AuditFinding(
        event_id=schemas.event_id(request_id, f"finding:{stage}", finding.kind, finding.dedup_key),
        timestamp=timestamp,
        source=finding.source,
        kind=finding.kind,
        severity=finding.severity.value,
        title=finding.title,
        body=finding.body,
        dedup_key=finding.dedup_key,
        request_id=request_id,
        extra=dict(finding.extra),
    )
