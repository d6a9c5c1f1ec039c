"""The daily digest: counted from the topics, put on `audit.findings` once a day."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from agents.alerts.digest import DIGEST_KIND, DayCounts, digest_finding, digest_id, last_end
from agents.alerts.state import decode_state
from citeflow.settings import SiteConfig
from streams.findings import FindingFilter, findings
from streams.log_reader import read_log
from streams.publisher import Publisher

__all__ = ["Digest"]

DAY = timedelta(days=1)


class _Outcome(msgspec.Struct):
    """What is read of a context: the rest is large."""

    event_id: str
    outcome: str


class Digest:
    """Sends the digest of each day when it has ended; one that was missed is sent late.

    Whether it was sent is read from the log, so a restart does not repeat it. `ours` tells whether
    this worker is the one that sends it; should two think so, the digest has one id.
    """

    def __init__(
        self,
        *,
        broker: str,
        changelog: str,
        site_config: SiteConfig,
        publisher: Publisher,
        ours: Callable[[], bool],
    ) -> None:
        self._broker = broker
        self._changelog = changelog
        self._site_config = site_config
        self._publisher = publisher
        self._ours = ours
        self._done: datetime | None = None

    async def look(self, now: datetime) -> None:
        """Send the digest if one is due. Raises what reading and sending raise."""
        hour = self._site_config.get_int("alert_digest_hour")
        if hour < 0 or not self._ours():
            return
        end = last_end(now, hour)
        if end == self._done:
            return
        if not await self._was_sent(end):
            await self._publisher.send(digest_finding(end, await self._count(end)))
        self._done = end

    async def _was_sent(self, end: datetime) -> bool:
        chosen = FindingFilter(kinds=frozenset({DIGEST_KIND}), since=end)
        async with contextlib.aclosing(findings(self._broker, chosen)) as found:
            async for finding in found:
                if finding.event_id == digest_id(end):
                    return True
        return False

    async def _count(self, end: datetime) -> DayCounts:
        counts = DayCounts(parked=await self._parked())
        chosen = FindingFilter(since=end - DAY, until=end)
        async with contextlib.aclosing(findings(self._broker, chosen)) as found:
            async for finding in found:
                counts.add(finding)
        seen: set[str] = set()
        log = read_log(self._broker, "context.ready", since=end - DAY)
        async with contextlib.aclosing(log):
            async for record in log:
                if record.value and record.timestamp < end.timestamp() * 1000:
                    with contextlib.suppress(msgspec.DecodeError):
                        context = msgspec.json.decode(record.value, type=_Outcome)
                        if context.event_id not in seen:
                            seen.add(context.event_id)
                            counts.outcomes[context.outcome] += 1
        return counts

    async def _parked(self) -> int:
        """How many alerts wait, of all workers."""
        parked: dict[bytes, int] = {}
        log = read_log(self._broker, self._changelog)
        async with contextlib.aclosing(log):
            async for record in log:
                parked.pop(record.key, None)
                if record.value:
                    with contextlib.suppress(msgspec.DecodeError):
                        parked[record.key] = len(decode_state(record.value).parked)
        return sum(parked.values())
