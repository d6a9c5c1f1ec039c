"""Once a day, what the last day held: a finding like any other, and delivered like one."""

from __future__ import annotations

import collections
import contextlib
import logging
from collections.abc import Callable
from datetime import date, datetime, timedelta

import schemas
from citeflow.findings import Severity
from citeflow.settings import SiteConfig
from streams.findings import FindingFilter, findings
from streams.publisher import Publisher

__all__ = ["DIGEST_KIND", "DIGEST_SOURCE", "Digest"]

logger = logging.getLogger(__name__)

DIGEST_KIND, DIGEST_SOURCE = "daily_digest", "alert_agent"
TOP_KINDS = 5


class Digest:
    """Tells of the day before, in the hour of `alert_digest_hour` (UTC).

    `ours` says whether this worker has the digest's partition: one worker tells it. Whether it has
    been told already is read from the topic, so that a restart does not tell it again. `parked` is
    how many alerts wait in this worker's partitions.
    """

    def __init__(
        self,
        *,
        broker: str,
        publisher: Publisher,
        site_config: SiteConfig,
        ours: Callable[[], bool],
        parked: Callable[[], int],
    ) -> None:
        self._broker = broker
        self._publisher = publisher
        self._site_config = site_config
        self._ours = ours
        self._parked = parked
        self._told: date | None = None

    async def look(self, now: datetime) -> None:
        """Tell it when it is due. Raises what reading and sending raise."""
        if now.hour != self._site_config.get_int("alert_digest_hour"):
            return
        if self._told == now.date() or not self._ours():
            return
        name = schemas.event_id("", "digest", now.date().isoformat())
        digest = await self._made(name, now)
        if digest is not None:
            await self._publisher.send(digest)
        self._told = now.date()

    async def _made(self, name: str, now: datetime) -> schemas.AuditFinding | None:
        """The digest, None when it stands on the topic already."""
        kinds: collections.Counter[str] = collections.Counter()
        blocked: collections.Counter[str] = collections.Counter()
        chosen = FindingFilter(since=now - timedelta(days=1))
        async with contextlib.aclosing(findings(self._broker, chosen)) as found:
            async for finding in found:
                if finding.event_id == name:
                    return None
                if finding.kind == "web_search_blocked":
                    blocked[str(finding.extra.get("backend", "?"))] += 1
                if finding.kind != DIGEST_KIND:
                    kinds[finding.kind] += 1
        lines = [
            f"{kinds.total()} findings",
            "most: " + (_counts(kinds) or "none"),
            f"alerts parked: {self._parked()}",
            "search backends that refused: " + (_counts(blocked) or "none"),
            f"contexts emitted at their deadline: {kinds['context_deadline_passed']}",
        ]
        return schemas.AuditFinding(
            event_id=name,
            timestamp=now,
            source=DIGEST_SOURCE,
            kind=DIGEST_KIND,
            severity=Severity.WARN.value,
            title=f"The day to {now:%Y-%m-%d %H:%M} UTC",
            body="\n".join(lines),
            dedup_key=f"{DIGEST_KIND}:{now:%Y-%m-%d}",
        )


def _counts(counter: collections.Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common(TOP_KINDS))
