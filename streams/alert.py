"""The alert stage: findings with what is remembered of their kind and source, and the channels."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

import schemas
from agents.alerts import (
    AlertState,
    Channels,
    Parked,
    Refused,
    Verdict,
    finding_message,
    judge,
    policy_of,
    summary_finding,
    trimmed,
    window_of,
)
from agents.alerts.policy import severity_of
from agents.alerts.state import decode_state, encode_state
from agents.base import Emit, Inbound
from citeflow.findings import Severity
from citeflow.settings import SiteConfig
from streams.metrics import note_delivery, note_finding
from streams.publisher import Publisher, PublishError
from streams.rejection import REDRIVE_HEADER, rejection
from streams.state_table import StateTable
from streams.topics import topic_of

__all__ = ["ALERT_RECORDS", "AlertCodec", "AlertStage", "partition_of_alert", "send_alerts_due"]

logger = logging.getLogger(__name__)

AlertRecord = schemas.AuditFinding | schemas.AlertDue

ALERT_RECORDS: dict[str, type[AlertRecord]] = {
    "audit.findings": schemas.AuditFinding,
    "alerts.due": schemas.AlertDue,
}

# Each at most 14 kB as JSON: more in one state would near the size of a record, so another state is
# begun.
MAX_PARKED = 40
# Tried on one tick, and after so many seconds no other is begun: one that takes all its tries takes
# 83 s, and both together must end within the 120 s that a rebalance waits for.
MAX_TRIED, TICK_SECONDS = 20, 30.0
# What every channel refuses for good is tried so often again, in some eight minutes: a service in
# trouble may answer so, too.
REFUSED_TRIES = 5
NEVER = datetime(9998, 12, 31, tzinfo=UTC)

_LEVELS = {
    Severity.INFO: logging.INFO,
    Severity.WARN: logging.WARNING,
    Severity.ERROR: logging.ERROR,
    Severity.CRITICAL: logging.CRITICAL,
}


class AlertCodec:
    """JSON; two states that were written at once are merged, see `AlertState.merged`."""

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
        """Both in one; where one is damaged, what comes later."""
        old, new = self.decode(b"", before), self.decode(b"", logged)
        if old is None or new is None:
            return logged
        return self.encode(old.merged(new))


async def send_alerts_due(
    table: StateTable[AlertState], publisher: Publisher, now: datetime
) -> None:
    """Send a tick for each state that is due, to the partition that the state is of."""
    for key, at in table.pop_due(now):
        state = table.get(key)
        if state is None:
            continue
        slot = int(key.split(b"|", 2)[1])
        due = schemas.AlertDue(
            kind=state.kind, source=state.source, subject=state.subject, slot=slot, due_at=at
        )
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

    def parked(self) -> int:
        """How many findings wait to be taken by a channel."""
        return sum(len(state.parked) for state in self._table.states())

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
            await self._tick(event.origin.partition, record, emit)
        else:
            await self._finding(event.origin, record)

    async def give_up(self, event: Inbound[AlertRecord], error: Exception, emit: Emit) -> None:
        """A finding is never given up: the worker ends, and the next one takes it again."""
        if isinstance(event.record, schemas.AuditFinding):
            _log(event.record, "could not be handled")
        raise PublishError(f"an alert could not be handled: {type(error).__name__}") from error

    async def _finding(self, origin: schemas.Origin, finding: schemas.AuditFinding) -> None:
        finding = trimmed(finding)
        policy = policy_of(finding.kind, self._site_config)
        subject, minutes = window_of(finding, policy, self._site_config)
        place = _Place(origin.partition, finding.kind, finding.source, subject)
        state = self._table.get(place.key())
        verdict = judge(finding, policy, minutes, state, self._clock())
        if verdict is Verdict.COOL and origin.header(REDRIVE_HEADER):
            verdict = Verdict.SEND  # somebody asked for this one
        if verdict is Verdict.RECORD:
            _count("recorded", finding)
            return
        if verdict is Verdict.KNOWN:
            _count("known", finding)
            return
        state = state or place.new_state()
        if verdict is Verdict.COOL:
            _count("cooled", finding)
            await self._put(place.key(), state.counted(origin.offset))
            return
        names = self._channels.wanted(finding, policy)
        if not names:
            _count("recorded", finding)  # no channel is set up: the log is the channel
            return
        left = tuple(await self._send(names, finding_message(finding)))
        now = self._clock()
        if left != names:
            state = state.opened(now, minutes)
        if not left:
            _count("sent", finding)
            await self._put(place.key(), state.delivered(finding.event_id, now))
            return
        _count("parked", finding)
        await self._park(place, state, finding, left, minutes, origin.offset)

    async def _send(self, names: tuple[str, ...], message: Mapping[str, Any]) -> dict[str, str]:
        left = await self._channels.send(names, message)
        for name in names:
            reason = left.get(name)
            outcome = "refused" if isinstance(reason, Refused) else "failed"
            note_delivery(name, outcome if reason else "taken")
        return left

    async def _park(
        self,
        place: _Place,
        state: AlertState,
        finding: schemas.AuditFinding,
        left: tuple[str, ...],
        minutes: float,
        offset: int,
    ) -> None:
        for slot in itertools.count():
            if slot:
                await self._put(place.key(), state)
                place = dataclasses.replace(place, slot=slot)
                state = self._table.get(place.key()) or place.new_state()
            if len(state.parked) < MAX_PARKED:
                parked = state.with_parked(
                    finding, left, self._clock(), window_minutes=minutes, offset=offset
                )
                await self._put(place.key(), parked)
                return

    async def _tick(self, partition: int, due: schemas.AlertDue, emit: Emit) -> None:
        key = _Place(partition, due.kind, due.source, due.subject, due.slot).key()
        state = self._table.get(key)
        if state is None or state.due_at != due.due_at:
            return  # a tick for another time than the one that counts now
        started = time.monotonic()
        for entry in [entry for entry in state.parked if entry.retry_at <= due.due_at][:MAX_TRIED]:
            state, done = await self._retry(entry, state, partition, due.slot, emit)
            # Each at once: those that were taken are not sent again after a crash.
            state = await self._put(key, state) or state
            if time.monotonic() - started > TICK_SECONDS:
                return  # what is left is still due, and has another tick
            if not done:
                break
        if state.window_ends is not None and state.window_ends <= due.due_at:
            state = await self._close(state)
        if state.known_until is not None and state.known_until <= due.due_at:
            state = state.forgotten()
        await self._put(key, None if state.over else state)

    async def _retry(
        self, entry: Parked, state: AlertState, partition: int, slot: int, emit: Emit
    ) -> tuple[AlertState, bool]:
        """The state after another try, and whether the next one may be tried at once."""
        message = finding_message(entry.finding, count=entry.count)
        reasons = await self._send(entry.channels, message)
        left, now = tuple(reasons), self._clock()
        if left != entry.channels and not slot:
            state = state.opened(now, entry.window_minutes)
        if not left:
            _count("sent", entry.finding)
            return state.delivered(entry.finding.event_id, now), True
        final = all(isinstance(reason, Refused) for reason in reasons.values())
        if final and entry.refusals + 1 >= REFUSED_TRIES:
            await emit(_dead_letter(entry, partition, reasons))
            _count("dead_lettered", entry.finding)
            return state.given_up(entry, now), True
        return state.put_off(entry, left, now, refused=final), final

    async def _close(self, state: AlertState) -> AlertState:
        """The end of a window: say how many were suppressed in it."""
        if not state.suppressed:
            return state.closed()
        now = self._clock()
        summary = summary_finding(state, now)
        names = self._channels.wanted(summary, policy_of(state.kind, self._site_config))
        message = finding_message(summary, count=state.suppressed)
        left = tuple(await self._send(names, message))
        closed = state.closed()
        if left:
            return closed.with_parked(summary, left, now, count=state.suppressed)
        return closed

    async def _put(self, key: bytes, state: AlertState | None) -> AlertState | None:
        if state == self._table.get(key):
            return state
        return await self._table.put(key, state)


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """Where a state is kept: its partition and what it is of."""

    partition: int
    kind: str
    source: str
    subject: str = ""
    slot: int = 0

    def key(self) -> bytes:
        """The key of the state. The partition and the slot are read back from it."""
        names = f"{len(self.kind)}|{len(self.source)}|{self.kind}|{self.source}|{self.subject}"
        return f"{self.partition}|{self.slot}|{names}".encode(errors="replace")

    def new_state(self) -> AlertState:
        """The state of which nothing is remembered yet."""
        return AlertState(kind=self.kind, source=self.source, subject=self.subject)


def _dead_letter(
    entry: Parked, partition: int, reasons: Mapping[str, str]
) -> schemas.EventRejected:
    # No finding of it: what is refused for its form would be refused again as that.
    finding = entry.finding
    topic = topic_of(finding)
    origin = schemas.Origin(
        topic=topic,
        partition=partition,
        offset=entry.offset,
        timestamp=finding.timestamp,
        key=finding.key,
        headers=(),
    )
    error = ", ".join(f"{name}: {reason}" for name, reason in sorted(reasons.items()))
    letter = rejection(
        origin, schemas.encode(finding), stage=AlertStage.stage, error=f"not taken by {error}"
    )
    # Several made here, at no place in the log, must be told apart.
    return msgspec.structs.replace(
        letter, event_id=schemas.event_id(finding.event_id, "rejected", AlertStage.stage)
    )


def _count(outcome: str, finding: schemas.AuditFinding) -> None:
    note_finding(finding.kind, outcome)
    _log(finding, outcome)


def _log(finding: schemas.AuditFinding, outcome: str) -> None:
    logger.log(
        _LEVELS[severity_of(finding.severity)],
        "%s from %s (request %s), %s: %s: %s",
        finding.kind, finding.source, finding.request_id, outcome, finding.title, finding.body,
    )  # fmt: skip
