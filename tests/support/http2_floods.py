"""Answers of an HTTP/2 server that wants to keep its reader busy, or fill it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.support.http2 import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    Stream,
    frame,
)

__all__ = ["FLOODS", "OPEN", "STREAM"]

# The smallest header block: ":status: 200", from the static table.
STATUS_200 = b"\x88"
# "content-type" of the static table with a value.
HTML = STATUS_200 + b"\x5f" + bytes((9,)) + b"text/html"


async def _forever(stream: Stream, data: bytes) -> None:
    while True:
        await stream.raw(data)


def _flood(start: bytes, again: bytes) -> Callable[[Stream], Awaitable[None]]:
    """Sends `start`, then `again` for ever; the number of the stream is put in for 0x7fffffff."""

    async def handler(stream: Stream) -> None:
        marker, number = b"\x7f\xff\xff\xff", stream.number.to_bytes(4, "big")
        await stream.raw(start.replace(marker, number))
        many = again.replace(marker, number)
        await _forever(stream, many * (100_000 // len(many) + 1))

    return handler


STREAM = 0x7FFFFFFF
OPEN = frame(HEADERS, HTML, flags=4, stream=STREAM)
# A literal field of 4,000 bytes put into the dynamic table, then named again and again: two
# hundred kilobytes of headers from a few bytes.
_BOMB = b"\x40\x01x\x7f\xa1\x1e" + b"y" * 4000 + b"\xbe" * 8000

FLOODS = {
    "continuations": _flood(
        frame(HEADERS, STATUS_200, stream=STREAM),
        frame(CONTINUATION, b"\0\1a\1b" * 9, stream=STREAM),
    ),
    "empty continuations": _flood(
        frame(HEADERS, STATUS_200, stream=STREAM), frame(CONTINUATION, stream=STREAM)
    ),
    "large continuations": _flood(
        frame(HEADERS, STATUS_200, stream=STREAM),
        frame(CONTINUATION, b"\0\1a\x7f\xe1\x7e" + b"b" * 16_000, stream=STREAM),
    ),
    "header bomb": _flood(b"", frame(HEADERS, HTML + _BOMB, flags=4, stream=STREAM)),
    "header frames": _flood(OPEN, frame(HEADERS, HTML, flags=4, stream=STREAM)),
    "early hints": _flood(b"", frame(HEADERS, b"\x08\x03103", flags=4, stream=STREAM)),
    "settings": _flood(b"", frame(SETTINGS, b"\0\3\0\0\0\1") + frame(SETTINGS, b"\0\3\0\0\0\x64")),
    "large settings": _flood(b"", frame(SETTINGS, b"\0\3\0\0\0\1" * 2700)),
    "pings": _flood(b"", frame(PING, b"\0" * 8)),
    "pings within the body": _flood(OPEN, frame(PING, b"\0" * 8)),
    "empty data": _flood(OPEN, frame(DATA, stream=STREAM)),
    "one byte at a time": _flood(OPEN, frame(DATA, b"x", stream=STREAM)),
    "padding": _flood(OPEN, frame(DATA, b"\xfe" + b"\0" * 254, flags=8, stream=STREAM)),
    "unknown frames": _flood(OPEN, frame(0x77, b"z" * 16_000, stream=STREAM)),
    "data without end": _flood(OPEN, frame(DATA, b"x" * 16_000, stream=STREAM)),
    "resets of nothing": _flood(b"", frame(RST_STREAM, b"\0\0\0\2", stream=99)),
    "goodbyes": _flood(b"", frame(GOAWAY, b"\0\0\0\1\0\0\0\0")),
    "no status": _flood(frame(HEADERS, b"\x08\x03abc", flags=5, stream=STREAM), frame(PING, b"")),
    "rubbish": _flood(b"", b"\xff\x00\xaa\x55" * 100),
}
