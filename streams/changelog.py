"""States as their changelog tells them, whoever wrote it.

A worker that was paused, or that is slow to hear of a rebalance, goes on for a moment with
partitions that are another's by then. Kafka does not stop it from writing; so the log decides. Each
partition has one owner, who knows the offset that its next record will have. A record that comes to
stand further on was preceded by another worker's, and these are read and merged before anything is
done: everyone who reads the same log with the same rule comes to the same states. In the join
(`streams.join.merge`) the first to close a request in the log decides with which pages.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from datetime import datetime
from typing import Protocol, TypeVar

__all__ = ["Changelog", "StateCodec"]

S = TypeVar("S")


class StateCodec(Protocol[S]):
    """How states are stored, and which of two stands."""

    def encode(self, state: S) -> bytes:
        """The state as stored."""

    def decode(self, key: bytes, data: bytes) -> S | None:
        """The state as read, None (and a word in the log) when it is damaged."""

    def merge(self, before: bytes, logged: bytes) -> bytes:
        """What stands when `logged` was appended to a log that had led to `before`."""

    def due_at(self, state: S) -> datetime:
        """When the clock should tick for it next."""


class Changelog:
    """States by record key in `data`, as encoded, and how far each partition has been read."""

    def __init__(
        self, data: MutableMapping[bytes, bytes], merge: Callable[[bytes, bytes], bytes]
    ) -> None:
        self.data = data
        self._merge = merge
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
        self._put(key, value if value is None or before is None else self._merge(before, value))
        self._read(partition, offset)

    def _put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.data.pop(key, None)
        else:
            self.data[key] = value

    def _read(self, partition: int, offset: int) -> None:
        self._next[partition] = max(self._next.get(partition, 0), offset + 1)
