"""The alert stage: findings with what is remembered of their kind and source, and the channels."""

from __future__ import annotations

import collections
import itertools
import logging
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

import schemas
from agents.alerts import (
    AlertState,
    Channels,
    Policy,
    Verdict,
    finding_message,
    judge,
    policy_of,
    summary_message,
)
from agents.alerts.policy import severity_of
from agents.alerts.state import decode_state, encode_state
from agents.base import Emit, Inbound
from citeflow.findings import Severity
from citeflow.settings import SiteConfig
from streams.publisher import Publisher, PublishError
from streams.state_table import StateTable
from streams.topics import topic_of

__all__ = ["ALERT_RECORDS", "AlertCodec", "AlertStage", "partition_of_alert", "send_alerts_due"]

logger = logging.getLogger(__name__)

AlertRecord = schemas.AuditFinding | schemas.AlertDue

ALERT_RECORDS: dict[str, type[AlertRecord]] = {
    "audit.findings": schemas.AuditFinding,
    "alerts.due": schemas.AlertDue,
}

# More in one state would near the size of a record: then another state is begun.
MAX_PARKED = 100
NEVER = datetime(9998, 12, 31, tzinfo=UTC)

_LEVELS = {
    Severity.INFO: logging.INFO,
    Severity.WARN: logging.WARNING,
    Severity.ERROR: logging.ERROR,
    Severity.CRITICAL: logging.CRITICAL,
}


class AlertCodec:
    """JSON; of two states the one that was written more often stands."""

    def encode(self, state: AlertState) -> bytes:
        """The state as stored."""
        return encode_state(state)

    def decode(self, key: bytes, data: bytes) -> AlertState | None:
        """The state as read, None when it is damaged."""
        try:
            return decode_state(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            logger.error("the alert state of %r is damaged and left out", key)
            return None

    def due_at(self, state: AlertState) -> datetime:
        """When a parked finding is tried again, or a window ends."""
        return state.due_at or NEVER

    def merge(self, before: bytes, logged: bytes) -> bytes:
        """The state with more writes; what comes later where they are equal, or one is damaged."""
        old, new = self.decode(b"", before), self.decode(b"", logged)
        if old is None or new is None:
            return logged
        return before if old.writes > new.writes else logged


async def send_alerts_due(
    table: StateTable[AlertState], publisher: Publisher, now: datetime
) -> None:
    """Send a tick for each state that is due, to the partition that the state is of."""
    for key, at in table.pop_due(now):
        state = table.get(key)
        if state is None:
            continue
        slot = int(key.split(b"|", 2)[1])
        due = schemas.AlertDue(kind=state.kind, source=state.source, slot=slot, due_at=at)
        await publisher.send_raw(
            topic_of(due), due.key, schemas.encode(due), partition=partition_of_alert(key)
        )


def partition_of_alert(key: bytes) -> int:
    """The partition that the key of an alert state names."""
    number = key.partition(b"|")[0]
    return int(number) if number.isdigit() else 0


class AlertStage:
    """Delivers findings, one at a time.

    The state is written after a channel has taken a finding, never before: a window is opened by
    a delivery alone, and a worker that dies in between delivers twice rather than not at all.
    `counts` tells how many were recorded, cooled, sent and parked, so that a throttle at work can
    be told from silence.
    """

    stage = "alert"

    def __init__(
        self,
        *,
        table: StateTable[AlertState],
        channels: Channels,
        site_config: SiteConfig,
        clock: Callable[[], datetime],
    ) -> None:
        self._table = table
        self._channels = channels
        self._site_config = site_config
        self._clock = clock
        self.counts: collections.Counter[str] = collections.Counter()

    def request_id(self, event: Inbound[AlertRecord]) -> str:
        """The request that the finding is about, or the finding itself."""
        record = event.record
        if isinstance(record, schemas.AlertDue):
            return record.kind
        return record.request_id or record.event_id

    async def handle(self, event: Inbound[AlertRecord], emit: Emit) -> None:
        """Deliver, count or record a finding; on a tick, do what has become due."""
        record = event.record
        if isinstance(record, schemas.AlertDue):
            await self._tick(event.origin.partition, record)
        else:
            await self._finding(event.origin, record)

    async def give_up(self, event: Inbound[AlertRecord], error: Exception, emit: Emit) -> None:
        """A finding is never given up: the worker ends, and the next one takes it again."""
        if isinstance(event.record, schemas.AuditFinding):
            _log(event.record, "could not be handled")
        raise PublishError(f"an alert could not be handled: {type(error).__name__}") from error

    async def _finding(self, origin: schemas.Origin, finding: schemas.AuditFinding) -> None:
        key = _key(origin.partition, finding.kind, finding.source)
        state = self._table.get(key)
        now = self._clock()
        policy = policy_of(finding.kind, self._site_config)
        verdict = judge(finding, policy, state, now)
        if verdict is Verdict.RECORD:
            self._count("recorded", finding)
            return
        state = state or AlertState(kind=finding.kind, source=finding.source)
        if verdict is Verdict.COOL:
            self._count("cooled", finding)
            await self._put(key, state.counted(origin.offset))
            return
        names = self._channels.wanted(finding, policy)
        if not names:
            self._count("recorded", finding)  # no channel is set up: the log is the channel
            return
        left = await self._channels.send(names, finding_message(finding))
        now = self._clock()
        if left != names:
            state = state.delivered(now, policy.cooldown_minutes)
        self._count("parked" if left else "sent", finding)
        if left:
            await self._park(origin.partition, state, finding, left)
        else:
            await self._put(key, state)

    async def _park(
        self,
        partition: int,
        state: AlertState,
        finding: schemas.AuditFinding,
        left: tuple[str, ...],
    ) -> None:
        now = self._clock()
        for slot in itertools.count():
            key = _key(partition, finding.kind, finding.source, slot)
            if slot:
                await self._put(_key(partition, finding.kind, finding.source), state)
                state = self._table.get(key) or AlertState(kind=state.kind, source=state.source)
            if len(state.parked) < MAX_PARKED:
                await self._put(key, state.with_parked(finding, left, now))
                return

    async def _tick(self, partition: int, due: schemas.AlertDue) -> None:
        key = _key(partition, due.kind, due.source, due.slot)
        state = self._table.get(key)
        if state is None or state.due_at != due.due_at:
            return  # a tick for another time than the one that counts now
        policy = policy_of(state.kind, self._site_config)
        for entry in state.parked:
            if entry.retry_at <= due.due_at:
                message = finding_message(entry.finding)
                left = await self._channels.send(entry.channels, message)
                now = self._clock()
                state = state.retried(entry, left, now)
                if left != entry.channels and not due.slot:
                    state = state.delivered(now, policy.cooldown_minutes)
                if not left:
                    self._count("sent", entry.finding)
                # Each at once: those that were taken are not sent again after a crash.
                state = await self._put(key, state) or state
        if state.window_ends is not None and state.window_ends <= due.due_at:
            state = await self._close(state, policy)
        await self._put(key, None if state.over else state)

    async def _close(self, state: AlertState, policy: Policy) -> AlertState:
        """The end of a window: say how many were suppressed in it."""
        if not state.suppressed:
            return state.closed()
        now = self._clock()
        summary = summary_message(state, now)
        names = self._channels.wanted(_summary_finding(state, now), policy)
        left = await self._channels.send(names, summary)
        if left and left == names:
            logger.warning("the summary of %s could not be posted yet", state.kind)
            return state.later(now)
        return state.closed()

    async def _put(self, key: bytes, state: AlertState | None) -> AlertState | None:
        if state == self._table.get(key):
            return state
        return await self._table.put(key, state)

    def _count(self, outcome: str, finding: schemas.AuditFinding) -> None:
        self.counts[outcome] += 1
        _log(finding, outcome)


def _summary_finding(state: AlertState, now: datetime) -> schemas.AuditFinding:
    return schemas.AuditFinding(
        event_id="", timestamp=now, source=state.source, kind=state.kind,
        severity=Severity.WARN.value, title="", body="", dedup_key="",
    )  # fmt: skip


def _key(partition: int, kind: str, source: str, slot: int = 0) -> bytes:
    return f"{partition}|{slot}|{len(kind)}|{kind}|{source}".encode(errors="replace")


def _log(finding: schemas.AuditFinding, outcome: str) -> None:
    logger.log(
        _LEVELS[severity_of(finding.severity)],
        "%s from %s (request %s), %s: %s: %s",
        finding.kind, finding.source, finding.request_id, outcome, finding.title, finding.body,
    )  # fmt: skip
