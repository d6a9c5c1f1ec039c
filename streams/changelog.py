"""The join's states as their changelog tells them, whoever wrote it.

A worker that was paused, or that is slow to hear of a rebalance, goes on for a moment with
partitions that are another's by then. Kafka does not stop it from writing; so the log decides. Each
partition has one owner, who knows the offset that its next record will have. A record that comes to
stand further on was preceded by another worker's, and these are read and merged before anything is
done: with the rule of `streams.join.merge`, everyone who reads the same log comes to the same
states, and the first to close a request in the log decides with which pages.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping

import msgspec

from streams.join import JoinState, Phase, decode_state, encode_state, merge

__all__ = ["Changelog", "decoded"]

logger = logging.getLogger(__name__)


class _Peek(msgspec.Struct):
    """So much of a state as tells mostly which of two stands."""

    phase: Phase


_peek = msgspec.json.Decoder(_Peek)


class Changelog:
    """States by record key in `data`, as encoded, and how far each partition has been read."""

    def __init__(self, data: MutableMapping[bytes, bytes]) -> None:
        self.data = data
        self._next: dict[int, int] = {}

    def unread_before(self, partition: int, offset: int) -> int | None:
        """Where to read from before the record at `offset` counts; None when nothing is unread."""
        known = self._next.get(partition, 0)
        return known if offset > known else None

    def is_next(self, partition: int, offset: int) -> bool:
        """Whether a record at `offset` follows directly on what has been read."""
        return offset == self._next.get(partition, 0)

    def forget(self, partition: int) -> None:
        """Read the partition from its beginning before it is written to again."""
        self._next.pop(partition, None)

    def append(self, partition: int, offset: int, key: bytes, value: bytes | None) -> None:
        """Take over a record that this worker wrote after what it has read: it stands as it is."""
        self._put(key, value)
        self._read(partition, offset)

    def apply(self, partition: int, offset: int, key: bytes, value: bytes | None) -> None:
        """Merge a record as the log has it."""
        before = self.data.get(key)
        self._put(key, value if value is None or before is None else _merged(before, value))
        self._read(partition, offset)

    def _put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.data.pop(key, None)
        else:
            self.data[key] = value

    def _read(self, partition: int, offset: int) -> None:
        self._next[partition] = max(self._next.get(partition, 0), offset + 1)


def decoded(key: bytes, data: bytes | None) -> JoinState | None:
    """The state, None when there is none or it is damaged."""
    if data is None:
        return None
    try:
        return decode_state(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        logger.error("the state of request %r is damaged and left out", key)
        return None


def _merged(before: bytes, logged: bytes) -> bytes:
    try:
        was, comes = _peek.decode(before).phase, _peek.decode(logged).phase
        if was is not comes:
            order = tuple(Phase)
            return logged if order.index(comes) > order.index(was) else before
        if comes is not Phase.COLLECTING:
            return before
        old, new = decode_state(before), decode_state(logged)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return logged  # one is damaged: the later one can be read, or an event starts it anew
    state = merge(old, new)
    return logged if state == new else encode_state(state)
