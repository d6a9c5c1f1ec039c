"""The messages between a pool and its worker: one tag byte, eight bytes of length, the body."""

from __future__ import annotations

import enum
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

__all__ = ["MAX_FRAME_BYTES", "FrameError", "Tag", "receive", "send"]

# Above the largest page body a setting allows (50 MB) with room for the request around it; below
# what would hurt the parent if a worker gone wrong announced a length at random.
MAX_FRAME_BYTES = 64_000_000

_HEADER = struct.Struct("!BQ")


class Tag(enum.IntEnum):
    """What a message means."""

    READY = 1
    """Worker: the target is imported."""
    JOB = 2
    """Pool: the payload of one job."""
    ANSWER = 3
    """Worker: what the target returned."""
    FAILED = 4
    """Worker: the target raised; the body describes it."""


class FrameError(Exception):
    """The other side closed the connection or sent something that is not a message."""


def send(sock: socket.socket, tag: Tag, body: bytes, *, deadline: float | None = None) -> None:
    """Send one message, by `deadline` (of `time.monotonic`) if there is one.

    Raises `TimeoutError` at the deadline, `FrameError` for a body that is too long, `OSError`
    when the other side is gone.
    """
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a message of {len(body)} bytes is too long")
    header = _HEADER.pack(tag, len(body))
    sock.settimeout(_remaining(deadline))
    # Together, so that the other side wakes up once and finds both.
    sent = sock.sendmsg([header, body])
    for part in (header[sent:], memoryview(body)[max(0, sent - len(header)) :]):
        if part:
            sock.settimeout(_remaining(deadline))
            sock.sendall(part)


def receive(sock: socket.socket, *, deadline: float | None = None) -> tuple[Tag, bytes]:
    """Read one message, by `deadline` (of `time.monotonic`) if there is one.

    Raises `TimeoutError` at the deadline, `FrameError` at the end of the connection or for a
    message that breaks the format, `OSError` when the connection broke.
    """
    tag, length = _HEADER.unpack(_exactly(sock, _HEADER.size, deadline))
    if length > MAX_FRAME_BYTES:
        raise FrameError(f"a message of {length} bytes is too long")
    try:
        known = Tag(tag)
    except ValueError as exc:
        raise FrameError(f"unknown message tag {tag}") from exc
    return known, bytes(_exactly(sock, length, deadline))


def _remaining(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _exactly(sock: socket.socket, count: int, deadline: float | None) -> bytearray:
    buffer = bytearray(count)
    view = memoryview(buffer)
    filled = 0
    while filled < count:
        sock.settimeout(_remaining(deadline))
        got = sock.recv_into(view[filled:])
        if got == 0:
            raise FrameError("the connection was closed")
        filled += got
    return buffer
