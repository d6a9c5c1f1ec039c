"""What a day held, in one finding."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agents.alerts.policy import severity_of
from citeflow.findings import Severity
from schemas import AuditFinding, ContextOutcome, event_id

__all__ = ["DIGEST_KIND", "DayCounts", "digest_finding", "digest_id", "last_end"]

DIGEST_KIND = "daily_digest"
TOP = 5
BLOCKED_KIND = "web_search_blocked"


@dataclass(slots=True)
class DayCounts:
    """What is counted for a digest; `parked` are the alerts that wait now."""

    severities: collections.Counter[str] = field(default_factory=collections.Counter)
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    blocked: collections.Counter[str] = field(default_factory=collections.Counter)
    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    parked: int = 0

    def add(self, finding: AuditFinding) -> None:
        """Count a finding; digests are not counted."""
        if finding.kind == DIGEST_KIND:
            return
        self.severities[severity_of(finding.severity).value] += 1
        self.kinds[finding.kind] += 1
        if finding.kind == BLOCKED_KIND:
            self.blocked[finding.source.rpartition(".")[2]] += 1


def last_end(now: datetime, hour: int) -> datetime:
    """The last time that it was `hour` o'clock, UTC."""
    end = now.astimezone(UTC).replace(hour=hour, minute=0, second=0, microsecond=0)
    return end if end <= now else end - timedelta(days=1)


def digest_id(end: datetime) -> str:
    """The event id of the digest of the day that ended at `end`."""
    return event_id(end.isoformat(), DIGEST_KIND)


def digest_finding(end: datetime, counts: DayCounts) -> AuditFinding:
    """The digest of the day that ended at `end`."""
    severities = [
        f"{counts.severities[s]} {s.value}" for s in reversed(Severity) if counts.severities[s]
    ]
    requests = counts.outcomes.total()
    incomplete = [
        f"{counts.outcomes[outcome]} {outcome.value}"
        for outcome in ContextOutcome
        if outcome is not ContextOutcome.COMPLETE and counts.outcomes[outcome]
    ]
    lines = [
        _line("findings", counts.kinds.total(), severities),
        _line("requests", requests, incomplete),
        f"alerts parked: {counts.parked}",
    ]
    if counts.kinds:
        lines.append("most frequent: " + _most(counts.kinds))
    if counts.blocked:
        lines.append("search backends that refused: " + _most(counts.blocked))
    return AuditFinding(
        event_id=digest_id(end),
        timestamp=end,
        source="alert_agent",
        kind=DIGEST_KIND,
        severity="warn",
        title=f"The day until {end:%Y-%m-%d %H:%M} UTC",
        body="\n".join(lines),
        dedup_key=f"{DIGEST_KIND}:{end.isoformat()}",
    )


def _line(what: str, number: int, parts: list[str]) -> str:
    return f"{what}: {number}" + (f" ({', '.join(parts)})" if parts else "")


def _most(counter: collections.Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common(TOP))
