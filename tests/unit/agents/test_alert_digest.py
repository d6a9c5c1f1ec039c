"""The digest of a day."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

import schemas
from agents.alerts.digest import DayCounts, digest_finding, digest_id, last_end

END = datetime(2026, 3, 2, 8, tzinfo=UTC)


def finding(kind: str, severity: str = "warn", source: str = "s") -> schemas.AuditFinding:
    return schemas.AuditFinding(
        event_id="e", timestamp=END, source=source, kind=kind, severity=severity,
        title="t", body="b", dedup_key="d",
    )  # fmt: skip


def test_it_tells_volume_kinds_backends_requests_and_what_is_parked() -> None:
    """The severest first, the most frequent kinds, what is not complete; no earlier digest."""
    counts = DayCounts(parked=2, outcomes=Counter(complete=7, degraded=2, blocked=1))
    for backend in ("duckduckgo", "searxng", "duckduckgo"):
        counts.add(finding("web_search_blocked", source=f"web_search.{backend}"))
    counts.add(finding("agent_failed", "error"))
    counts.add(finding("web_search_failed", "info"))
    counts.add(finding("daily_digest"))
    digest = digest_finding(END, counts)
    assert digest.body.splitlines() == [
        "findings: 5 (1 error, 3 warn, 1 info)",
        "requests: 10 (2 degraded, 1 blocked)",
        "alerts parked: 2",
        "most frequent: web_search_blocked 3, agent_failed 1, web_search_failed 1",
        "search backends that refused: duckduckgo 2, searxng 1",
    ]
    assert digest.title == "The day until 2026-03-02 08:00 UTC"
    assert (digest.kind, digest.severity) == ("daily_digest", "warn")


def test_a_quiet_day_is_told_as_well() -> None:
    """Silence is not the same as nothing to tell."""
    assert digest_finding(END, DayCounts()).body == "findings: 0\nrequests: 0\nalerts parked: 0"


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (datetime(2026, 3, 2, 8, tzinfo=UTC), END),
        (datetime(2026, 3, 2, 23, 59, tzinfo=UTC), END),
        (datetime(2026, 3, 3, 7, 59, 59, tzinfo=UTC), END),
    ],
)
def test_a_day_ends_at_its_hour(now: datetime, expected: datetime) -> None:
    """The last time that it was eight o'clock; each day has one id."""
    assert last_end(now, 8) == expected
    assert digest_id(END) != digest_id(END.replace(day=3))
