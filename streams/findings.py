"""Findings as they stand on their topic: chosen, shown, counted."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import schemas
from agents.alerts.policy import severity_of
from citeflow.findings import Severity
from streams.log_reader import log_end, read_log

__all__ = ["FindingFilter", "FindingSummary", "findings", "summarise"]

_ORDER = tuple(Severity)
# By how much producers' clocks may differ from the broker's.
CLOCK_SKEW = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings: of these kinds (all if empty), at least so severe, not before `since`."""

    kinds: frozenset[str] = frozenset()
    min_severity: Severity = Severity.INFO
    since: datetime | None = None
    until: datetime | None = None

    def takes(self, finding: schemas.AuditFinding) -> bool:
        """Whether it is one of them."""
        return (
            (not self.kinds or finding.kind in self.kinds)
            and _ORDER.index(severity_of(finding.severity)) >= _ORDER.index(self.min_severity)
            and (self.since is None or finding.timestamp >= self.since)
            and (self.until is None or finding.timestamp < self.until)
        )


@dataclass(slots=True)
class FindingSummary:
    """How many there were of each severity, of each kind and on each day (UTC)."""

    severities: collections.Counter[str] = field(default_factory=collections.Counter)
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    days: collections.Counter[str] = field(default_factory=collections.Counter)

    @property
    def total(self) -> int:
        """All of them."""
        return self.kinds.total()


async def findings(
    broker: str, chosen: FindingFilter, *, follow: bool = False
) -> AsyncGenerator[schemas.AuditFinding, None]:
    """Findings in the order of their partitions, each `event_id` once.

    `follow` goes on with those to come, and begins with them unless `since` is given. Joins no
    group and commits nothing. Records that are no findings are passed over.
    """
    seen: set[str] = set()
    # A finding has the time of the event that it is about, and comes to its topic after that.
    since = chosen.since - CLOCK_SKEW if chosen.since is not None else None
    start = await log_end(broker, "audit.findings") if follow and since is None else None
    log = read_log(broker, "audit.findings", since=since, start=start, follow=follow)
    async with contextlib.aclosing(log):
        async for record in log:
            try:
                finding = schemas.decode(record.value, schemas.AuditFinding)
            except schemas.EventError:
                continue
            if finding.event_id not in seen and chosen.takes(finding):
                seen.add(finding.event_id)
                yield finding


async def summarise(broker: str, chosen: FindingFilter) -> FindingSummary:
    """Count what was chosen."""
    summary = FindingSummary()
    async with contextlib.aclosing(findings(broker, chosen)) as found:
        async for finding in found:
            summary.severities[severity_of(finding.severity).value] += 1
            summary.kinds[finding.kind] += 1
            summary.days[finding.timestamp.astimezone(UTC).date().isoformat()] += 1
    return summary
