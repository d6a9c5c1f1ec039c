"""What is remembered of one kind and source: the window of its last delivery, and what waits."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from schemas import AuditFinding

__all__ = ["AlertState", "Parked", "decode_state", "encode_state"]

# Seconds to the next try of what no channel took, doubled at each, up to the last.
FIRST_RETRY, LAST_RETRY = 15.0, 900.0


class Parked(msgspec.Struct, kw_only=True, frozen=True):
    """A finding that these channels have not taken yet."""

    finding: AuditFinding
    channels: tuple[str, ...]
    retry_at: datetime
    tries: int = 1


class AlertState(msgspec.Struct, kw_only=True, frozen=True):
    """The state of one kind and source.

    The window begins when a channel has taken a finding, and neither moves nor grows with what is
    suppressed in it. `counted_to` is the offset of the last finding counted, so that one that is
    delivered again by Kafka is not counted again. `writes` tells the younger of two states.
    """

    kind: str
    source: str
    window_started: datetime | None = None
    window_ends: datetime | None = None
    suppressed: int = 0
    counted_to: int = -1
    parked: tuple[Parked, ...] = ()
    writes: int = 0

    def quiet(self, now: datetime) -> bool:
        """Whether a finding that may be cooled is to be counted instead of sent."""
        return bool(self.parked) or (self.window_ends is not None and now < self.window_ends)

    @property
    def due_at(self) -> datetime | None:
        """When something is to be done: a parked finding tried, or a window closed."""
        times = [parked.retry_at for parked in self.parked]
        if self.window_ends is not None:
            times.append(self.window_ends)
        return min(times, default=None)

    @property
    def over(self) -> bool:
        """Whether nothing is left to be remembered."""
        return not self.parked and not self.suppressed and self.window_ends is None

    def counted(self, offset: int) -> AlertState:
        """With the finding at this offset suppressed."""
        if offset <= self.counted_to:
            return self
        return self._with(suppressed=self.suppressed + 1, counted_to=offset)

    def delivered(self, now: datetime, cooldown_minutes: float) -> AlertState:
        """With a window that starts now, unless one is open: that one stays as it is."""
        if not cooldown_minutes or (self.window_ends is not None and now < self.window_ends):
            return self
        ends = now + timedelta(minutes=cooldown_minutes)
        return self._with(window_started=now, window_ends=ends)

    def closed(self) -> AlertState:
        """With no window, and nothing suppressed: the summary was delivered, or none was due."""
        return self._with(window_started=None, window_ends=None, suppressed=0)

    def later(self, now: datetime) -> AlertState:
        """With a window that is closed a little later: its summary was not taken."""
        return self._with(window_ends=now + timedelta(seconds=FIRST_RETRY))

    def with_parked(
        self, finding: AuditFinding, channels: tuple[str, ...], now: datetime
    ) -> AlertState:
        """With a finding that these channels did not take."""
        # Extra facts are for whoever reads the topic; they are not shown in a message.
        slim = msgspec.structs.replace(finding, extra={})
        retry_at = now + timedelta(seconds=FIRST_RETRY)
        entry = Parked(finding=slim, channels=channels, retry_at=retry_at)
        others = (p for p in self.parked if p.finding.event_id != finding.event_id)
        return self._with(parked=(*others, entry))

    def retried(self, entry: Parked, channels: tuple[str, ...], now: datetime) -> AlertState:
        """With the outcome of another try: parked for longer, or no more."""
        others = tuple(p for p in self.parked if p.finding.event_id != entry.finding.event_id)
        if not channels:
            return self._with(parked=others)
        wait = min(FIRST_RETRY * 2**entry.tries, LAST_RETRY)
        again = msgspec.structs.replace(
            entry,
            channels=channels,
            tries=entry.tries + 1,
            retry_at=now + timedelta(seconds=wait),
        )
        return self._with(parked=(*others, again))

    def _with(self, **changes: object) -> AlertState:
        return msgspec.structs.replace(self, writes=self.writes + 1, **changes)


def encode_state(state: AlertState) -> bytes:
    """The state as stored."""
    return msgspec.json.encode(state)


def decode_state(data: bytes) -> AlertState:
    """The state as read. Raises `msgspec.DecodeError` when it is damaged."""
    return msgspec.json.decode(data, type=AlertState)
