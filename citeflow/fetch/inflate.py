"""Undo the content codings of a body piece by piece, never beyond a number of bytes.

The HTTP library's own decoders inflate a piece completely before anybody can look at its size: a
few kilobytes can become gigabytes. These stop at the cap while inflating.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import brotli

from citeflow.fetch.limits import FETCH_LIMITS

__all__ = [
    "ACCEPT_ENCODING",
    "BodyTooLargeError",
    "BrokenBodyError",
    "Inflater",
    "TruncatedBodyError",
]

ACCEPT_ENCODING = "gzip, deflate, br"

# What a decoder may put out at once. Large enough to be quick, small enough that layers of
# codings cannot multiply into more than this per layer.
_STEP = 65_536


class BodyTooLargeError(Exception):
    """The body is larger than the cap."""


class BrokenBodyError(Exception):
    """The body is not what its Content-Encoding says."""


class TruncatedBodyError(BrokenBodyError):
    """The body ended before it was complete."""


class _Decoder(Protocol):
    def feed(self, data: bytes, limit: int) -> bytes:
        """All that `data` inflates to; raises `BodyTooLargeError` above `limit` bytes."""

    def finished(self) -> bool:
        """True when nothing is missing at the end."""


class _Zlib:
    """gzip (also several members, also with rubbish behind) and deflate (zlib or raw)."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._decoder = zlib.decompressobj(31) if gzip else None
        self._start = b""
        self._complete = False  # at least one member is
        self._rubbish = False  # whatever follows is not looked at

    def feed(self, data: bytes, limit: int) -> bytes:
        if self._decoder is None:
            # "deflate" is zlib by the standard and raw deflate by custom; two bytes tell.
            self._start = data = self._start + data
            if len(data) < 2:
                return b""
            zlib_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._decoder = zlib.decompressobj(15 if zlib_header else -15)
        out = bytearray()
        while not self._rubbish:
            try:
                piece = self._decoder.decompress(data, _STEP)
            except zlib.error as exc:
                if not self._complete:
                    raise BrokenBodyError("the compressed body is damaged") from exc
                self._rubbish = True
                break
            out += piece
            if len(out) > limit:
                raise BodyTooLargeError
            if self._decoder.eof:
                self._complete = True
                self._rubbish = not self._gzip
                data = self._decoder.unused_data
                self._decoder = zlib.decompressobj(31)
            else:
                data = self._decoder.unconsumed_tail
            if not data and len(piece) < _STEP:
                break
        return bytes(out)

    def finished(self) -> bool:
        return self._complete


class _Brotli:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    def feed(self, data: bytes, limit: int) -> bytes:
        out = bytearray()
        try:
            if self._decoder.is_finished():
                return b""
            out += self._decoder.process(data, output_buffer_limit=_STEP)
            while not self._decoder.can_accept_more_data() and not self._decoder.is_finished():
                if len(out) > limit:
                    raise BodyTooLargeError
                out += self._decoder.process(b"", output_buffer_limit=_STEP)
        except brotli.error as exc:
            raise BrokenBodyError("the compressed body is damaged") from exc
        if len(out) > limit:
            raise BodyTooLargeError
        return bytes(out)

    def finished(self) -> bool:
        return bool(self._decoder.is_finished())


def _decoder(coding: str) -> _Decoder:
    if coding in ("gzip", "x-gzip"):
        return _Zlib(gzip=True)
    if coding == "deflate":
        return _Zlib(gzip=False)
    if coding == "br":
        return _Brotli()
    raise BrokenBodyError("the body has a content coding that was not asked for")


class Inflater:
    """Collects a body whose Content-Encoding header is `codings`, up to `cap` bytes.

    The cap holds for the bytes on the wire and for what each coding inflates to. Raises
    `BrokenBodyError` for codings that are unknown or too many.
    """

    def __init__(self, codings: str, cap: int) -> None:
        names = [name.strip().lower() for name in codings.split(",")]
        names = [name for name in names if name and name != "identity"]
        if len(names) > FETCH_LIMITS.content_codings:
            raise BrokenBodyError("the body has too many content codings")
        self._decoders = [_decoder(name) for name in reversed(names)]
        self._seen = [0] * (len(names) + 1)
        self._cap = cap
        self._body = bytearray()

    def feed(self, data: bytes) -> None:
        """Take bytes from the wire. Raises `BodyTooLargeError` and `BrokenBodyError`."""
        self._count(0, data)
        for layer, decoder in enumerate(self._decoders, 1):
            data = decoder.feed(data, self._cap - self._seen[layer])
            self._count(layer, data)
        self._body += data

    def raise_cap(self, cap: int) -> None:
        """Allow `cap` bytes, if that is more than so far."""
        self._cap = max(self._cap, cap)

    def start(self, count: int) -> bytes:
        """The first `count` bytes inflated so far."""
        return bytes(self._body[:count])

    def finish(self) -> bytes:
        """The whole body. Raises `BrokenBodyError` when a compressed one ends too early."""
        if self._seen[0] and not all(decoder.finished() for decoder in self._decoders):
            raise TruncatedBodyError("the compressed body is not complete")
        return bytes(self._body)

    def _count(self, layer: int, data: bytes) -> None:
        self._seen[layer] += len(data)
        if self._seen[layer] > self._cap:
            raise BodyTooLargeError
