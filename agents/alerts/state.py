"""What is remembered of one kind and source: the window of its last delivery, and what waits."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

import msgspec

from schemas import AuditFinding

__all__ = ["AlertState", "Parked", "decode_state", "encode_state", "trimmed"]

# Seconds to the next try of what no channel took, doubled at each, up to the last.
FIRST_RETRY, LAST_RETRY = 15.0, 900.0
# A finding that was delivered may come again: from Kafka after a crash, or emitted twice by a stage
# that crashed itself. Both happen soon, and a webhook takes some 150 findings a minute.
KNOWN = 200
KNOWN_FOR = timedelta(hours=1)
# As much of a finding as a message shows. Anybody may put a finding on the topic, and a state holds
# several: what they say must not outgrow a record.
LONGEST_NAME, LONGEST_TITLE, LONGEST_BODY = 120, 500, 2000


def trimmed(finding: AuditFinding) -> AuditFinding:
    """The finding with no more than a message shows, and names that are still told apart."""
    return msgspec.structs.replace(
        finding,
        event_id=_name(finding.event_id),
        kind=_name(finding.kind),
        source=_name(finding.source),
        dedup_key=_name(finding.dedup_key),
        severity=finding.severity[:LONGEST_NAME],
        request_id=(finding.request_id or "")[:LONGEST_NAME] or None,
        title=finding.title[:LONGEST_TITLE],
        body=finding.body[:LONGEST_BODY],
    )


def _name(text: str) -> str:
    if len(text) <= LONGEST_NAME:
        return text
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    return f"{text[: LONGEST_NAME // 2]}…{digest[:32]}"


class Parked(msgspec.Struct, kw_only=True, frozen=True):
    """A finding that these channels have not taken yet.

    `offset` is where it stands on its topic, -1 for one that was made here. `count` is how many it
    stands for; its delivery opens a window of `window_minutes`.
    """

    finding: AuditFinding
    channels: tuple[str, ...]
    retry_at: datetime
    tries: int = 1
    refusals: int = 0
    count: int = 1
    window_minutes: float = 0.0
    offset: int = -1


class AlertState(msgspec.Struct, kw_only=True, frozen=True):
    """The state of one kind and source; with a `subject`, of these findings of theirs alone.

    The window begins when a channel has taken a finding, and neither moves nor grows with what is
    suppressed in it. `counted_to` is the offset of the last finding counted, so that one that is
    delivered again by Kafka is not counted again; `known` are the ids of the last that were
    delivered, until `known_until`; `given` are those of the last that were given up. `writes` tells
    the younger of two states.
    """

    kind: str
    source: str
    subject: str = ""
    window_started: datetime | None = None
    window_ends: datetime | None = None
    suppressed: int = 0
    counted_to: int = -1
    parked: tuple[Parked, ...] = ()
    known: tuple[str, ...] = ()
    known_until: datetime | None = None
    given: tuple[str, ...] = ()
    writes: int = 0

    def quiet(self, now: datetime) -> bool:
        """Whether a finding that may be cooled is to be counted instead of sent."""
        return bool(self.parked) or (self.window_ends is not None and now < self.window_ends)

    def knows(self, event_id: str) -> bool:
        """Whether this very finding was delivered, or waits to be."""
        return event_id in self.known or any(p.finding.event_id == event_id for p in self.parked)

    @property
    def due_at(self) -> datetime | None:
        """When something is to be done: a parked finding tried, a window closed, ids forgotten."""
        times = [parked.retry_at for parked in self.parked]
        times += [time for time in (self.window_ends, self.known_until) if time is not None]
        return min(times, default=None)

    @property
    def over(self) -> bool:
        """Whether nothing is left to be remembered."""
        return self.due_at is None and not self.suppressed

    def counted(self, offset: int) -> AlertState:
        """With the finding at this offset suppressed."""
        if offset <= self.counted_to:
            return self
        return self._with(suppressed=self.suppressed + 1, counted_to=offset)

    def opened(self, now: datetime, minutes: float) -> AlertState:
        """With a window that starts now, unless one is open: that one stays as it is."""
        if not minutes or (self.window_ends is not None and now < self.window_ends):
            return self
        return self._with(window_started=now, window_ends=now + timedelta(minutes=minutes))

    def delivered(self, event_id: str, now: datetime) -> AlertState:
        """With a finding that all its channels have taken."""
        return self._with(
            parked=tuple(p for p in self.parked if p.finding.event_id != event_id),
            known=(*self.known, event_id)[-KNOWN:],
            known_until=now + KNOWN_FOR,
        )

    def closed(self) -> AlertState:
        """With no window, and nothing suppressed: the summary was delivered, or none was due."""
        return self._with(window_started=None, window_ends=None, suppressed=0)

    def forgotten(self) -> AlertState:
        """Without the ids of what was delivered long ago."""
        return self._with(known=(), known_until=None)

    def with_parked(
        self,
        finding: AuditFinding,
        channels: tuple[str, ...],
        now: datetime,
        *,
        count: int = 1,
        window_minutes: float = 0.0,
        offset: int = -1,
    ) -> AlertState:
        """With a finding that these channels did not take."""
        entry = Parked(
            # Extra facts are for whoever reads the topic; they are not shown in a message.
            finding=msgspec.structs.replace(finding, extra={}),
            channels=channels,
            retry_at=now + timedelta(seconds=FIRST_RETRY),
            count=count,
            window_minutes=window_minutes,
            offset=offset,
        )
        others = (p for p in self.parked if p.finding.event_id != finding.event_id)
        given = tuple(g for g in self.given if g != finding.event_id)
        return self._with(parked=(*others, entry), given=given)

    def put_off(
        self, entry: Parked, channels: tuple[str, ...], now: datetime, *, refused: bool = False
    ) -> AlertState:
        """With an entry that was tried again and that these channels did not take.

        What is due beside it waits as long, for the channels that did not take one take no other;
        not so when it was `refused` for what it is.
        """
        wait = timedelta(seconds=min(FIRST_RETRY * 2**entry.tries, LAST_RETRY))
        again = msgspec.structs.replace(
            entry,
            channels=channels,
            tries=entry.tries + 1,
            refusals=entry.refusals + 1 if refused else 0,
            retry_at=now + wait,
        )
        others = tuple(
            msgspec.structs.replace(p, retry_at=now + wait)
            if not refused and p.retry_at <= now and set(p.channels) & set(channels)
            else p
            for p in self.parked
            if p.finding.event_id != entry.finding.event_id
        )
        return self._with(parked=(*others, again))

    def given_up(self, entry: Parked, now: datetime) -> AlertState:
        """Without a finding that no channel will ever take.

        No delivery of it will open a window: what was suppressed while it waited is told at once.
        """
        event_id = entry.finding.event_id
        state = self._with(
            parked=tuple(p for p in self.parked if p.finding.event_id != event_id),
            given=(*self.given, event_id)[-KNOWN:],
        )
        if state.suppressed and state.window_ends is None and not state.parked:
            return state._with(window_started=min(entry.finding.timestamp, now), window_ends=now)
        return state

    def merged(self, logged: AlertState) -> AlertState:
        """What stands of this state and one that was appended to the log after it.

        The window is the younger one's. What is parked in either, was delivered by neither and not
        given up by the younger is parked: two workers at once may deliver it twice, but do not lose
        it.
        """
        younger = self if self.writes > logged.writes else logged
        known = tuple(dict.fromkeys((*self.known, *logged.known)))[-KNOWN:]
        parked: dict[str, Parked] = {}
        done = {*known, *younger.given}
        for entry in (*self.parked, *logged.parked):
            event_id = entry.finding.event_id
            if event_id not in done and entry.tries >= getattr(parked.get(event_id), "tries", 0):
                parked[event_id] = entry
        return msgspec.structs.replace(younger, parked=tuple(parked.values()), known=known)

    def _with(self, **changes: object) -> AlertState:
        return msgspec.structs.replace(self, writes=self.writes + 1, **changes)


def encode_state(state: AlertState) -> bytes:
    """The state as stored."""
    return msgspec.json.encode(state)


def decode_state(data: bytes) -> AlertState:
    """The state as read. Raises `msgspec.DecodeError` when it is damaged."""
    return msgspec.json.decode(data, type=AlertState)
