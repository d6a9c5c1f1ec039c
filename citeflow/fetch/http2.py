"""HTTP/2 under the same limits as HTTP/1.1.

What a frame costs to handle is nearly independent of its size, so a server can keep a reader busy
with next to no bytes (empty frames, pings, settings, endless headers). Frames are therefore counted
on the wire, before the protocol library sees them. What that library and httpcore raise is told in
httpcore's network and protocol errors, as for HTTP/1.1: a stream or connection that the server
resets is a read error.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from typing import Any

import h2.events
import h2.exceptions
import hpack
import httpcore

from citeflow.fetch.limits import HTTP2_LIMITS, Http2Limits

__all__ = ["FrameCounter", "FramesCounted", "StreamResetError", "told_as_http1"]

_HEAD = 9
_DATA, _PADDED = 0, 0x8


def _is_http2(stream: httpcore.AsyncNetworkStream) -> bool:
    """True when a TLS connection has settled on HTTP/2."""
    tls: ssl.SSLObject | None = stream.get_extra_info("ssl_object")
    return tls is not None and tls.selected_alpn_protocol() == "h2"


class StreamResetError(httpcore.ReadError):
    """The server ended this stream, on a connection that goes on."""


class FrameCounter:
    """Counts the frames of a connection from its bytes. `begin` starts a request's count."""

    def __init__(self, limits: Http2Limits = HTTP2_LIMITS) -> None:
        self._limits = limits
        self._head = b""
        self._rest_of_frame = 0
        self.begin()

    def begin(self) -> None:
        """Start counting for the next request."""
        self._bytes = self._frames = self._without_text = self._bytes_of_others = 0

    def feed(self, data: bytes) -> None:
        """Take bytes from the wire. Raises `httpcore.RemoteProtocolError` for too many frames."""
        self._bytes += len(data)
        position = 0
        while position < len(data):
            if self._rest_of_frame:
                step = min(self._rest_of_frame, len(data) - position)
                self._rest_of_frame -= step
                position += step
                continue
            missing = _HEAD - len(self._head)
            self._head += data[position : position + missing]
            position += missing
            if len(self._head) == _HEAD:
                self._count(self._head)
                self._head = b""

    def _count(self, head: bytes) -> None:
        self._rest_of_frame = int.from_bytes(head[:3], "big")
        self._frames += 1
        # A padded frame may be all padding, which no cap on the body counts.
        if head[3] != _DATA:
            self._bytes_of_others += self._rest_of_frame
        self._without_text += not self._rest_of_frame or head[3] != _DATA or head[4] & _PADDED > 0
        limits = self._limits
        if (
            self._without_text > limits.frames_without_text
            or self._bytes_of_others > limits.bytes_of_others
            or self._frames > limits.frames + self._bytes // limits.bytes_per_frame
        ):
            raise httpcore.RemoteProtocolError("too many HTTP/2 frames for what they hold")


class FramesCounted(httpcore.AsyncNetworkStream):
    """A connection whose frames are counted once its TLS has settled on HTTP/2."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, counter: FrameCounter) -> None:
        self._stream = stream
        self._counter = counter
        self._counting = False

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """The connection within this one."""
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        if not _is_http2(stream):
            return stream
        counted = FramesCounted(stream, self._counter)
        counted._counting = True
        return counted

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Bytes from the wire, a few at a time: all frames in them are handled in one go."""
        if not self._counting:
            return await self._stream.read(max_bytes, timeout)
        data = await self._stream.read(min(max_bytes, HTTP2_LIMITS.read_bytes), timeout)
        self._counter.feed(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of `buffer`."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        """What is known of the connection."""
        return self._stream.get_extra_info(info)


@contextlib.contextmanager
def told_as_http1(*, in_body: bool) -> Iterator[None]:
    """Raises what HTTP/2 raises as HTTP/1.1 would: `httpcore.ReadError` when the server ended the
    stream or the connection, `httpcore.RemoteProtocolError` when it broke the protocol."""
    try:
        yield
    except httpcore.ConnectionNotAvailable as exc:
        # It announced that it would not answer any more streams.
        raise httpcore.ReadError("the server has closed the connection") from exc
    except httpcore.ProtocolError as exc:
        cause = exc.args[0] if exc.args else None
        if isinstance(cause, h2.events.StreamReset):
            raise StreamResetError("the server has reset the stream") from exc
        if isinstance(cause, h2.events.ConnectionTerminated) or (
            in_body and "disconnected" in str(exc)
        ):
            raise httpcore.ReadError("the server has closed the connection") from exc
        if isinstance(cause, h2.exceptions.H2Error):
            raise _told(cause) from exc
        raise
    except (h2.exceptions.H2Error, hpack.HPACKError) as exc:
        raise _told(exc) from exc
    except ValueError as exc:  # a status that is not a number
        raise httpcore.RemoteProtocolError("the HTTP/2 response has no status") from exc


def _told(error: Exception) -> Exception:
    if isinstance(error, h2.exceptions.InvalidBodyLengthError):
        if error.actual_length < error.expected_length:
            return httpcore.ReadError("the server has ended the body too early")
        return httpcore.RemoteProtocolError("the body is longer than its length says")
    return httpcore.RemoteProtocolError(f"the HTTP/2 protocol was broken: {error}")
