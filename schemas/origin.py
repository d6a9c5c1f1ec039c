"""Where an event was read from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["Origin"]

EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Origin:
    """A record's position in the log and its metadata, free of any client library's types.

    `timestamp` is the record's own, in UTC; `key` and header values are the bytes as sent.
    """

    topic: str
    partition: int
    offset: int
    timestamp: datetime = EPOCH
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def position(self) -> str:
        """`topic-partition-offset`, for messages to people."""
        return f"{self.topic}-{self.partition}-{self.offset}"

    def header(self, name: str) -> bytes | None:
        """The value of the first header with this name."""
        return next((value for key, value in self.headers if key == name), None)
