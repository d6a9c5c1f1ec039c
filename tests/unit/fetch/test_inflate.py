"""Content codings are undone within the cap."""

from __future__ import annotations

import contextlib
import functools
import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.fetch.inflate import BodyTooLargeError, BrokenBodyError, Inflater


def raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    " deflate ": raw_deflate,
    "br": functools.partial(brotli.compress, quality=2),
    "gzip, br": lambda data: brotli.compress(gzip.compress(data), quality=2),
    "gzip, gzip": lambda data: gzip.compress(gzip.compress(data)),
}


def inflate(codings: str, wire: bytes, cap: int = 1_000_000, step: int = 1000) -> bytes:
    inflater = Inflater(codings, cap)
    for start in range(0, len(wire), step):
        inflater.feed(wire[start : start + step])
    return inflater.finish()


@given(st.sampled_from(sorted(CODERS)), st.binary(max_size=3000), st.integers(1, 4000))
def test_every_coding_round_trips(codings: str, data: bytes, step: int) -> None:
    """What a server encoded comes out again, however the wire cuts it."""
    assert inflate(codings, CODERS[codings](data), step=step) == data


@pytest.mark.parametrize("codings", sorted(CODERS))
def test_the_cap_holds_to_the_byte(codings: str) -> None:
    """A body of exactly the cap passes, one byte more does not."""
    data = b"x" * 5000
    assert inflate(codings, CODERS[codings](data), cap=5000) == data
    with pytest.raises(BodyTooLargeError):
        inflate(codings, CODERS[codings](data + b"x"), cap=5000)


@pytest.mark.parametrize("codings", ["gzip", "deflate", "br", "gzip, gzip", "gzip, br"])
def test_a_bomb_stops_at_the_cap(codings: str) -> None:
    """Inflating stops at the cap, not after the bomb: memory stays near the cap."""
    bomb = CODERS[codings](bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLargeError):
            inflate(codings, bomb, cap=100_000, step=len(bomb))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_gzip_members_and_trailing_rubbish() -> None:
    """Several gzip members are one body; what follows the last one is ignored."""
    wire = gzip.compress(b"one ") + gzip.compress(b"two")
    for tail in (b"", b"\0" * 20, b"rubbish", b"\x1f\x8brubbish"):
        for step in (1, 7, 1000):
            assert inflate("gzip", wire + tail, step=step) == b"one two"


@pytest.mark.parametrize("codings", ["gzip", "deflate", "br"])
def test_damaged_and_short_bodies_are_broken(codings: str) -> None:
    """A body that is not in its coding, or ends too early, is broken, not short."""
    with pytest.raises(BrokenBodyError):
        inflate(codings, b"\xff<html>this is not compressed at all</html>")
    with pytest.raises(BrokenBodyError):
        inflate(codings, CODERS[codings](bytes(range(256)) * 10)[:-20])


@pytest.mark.parametrize("codings", ["zstd", "compress", "gzip, gzip, gzip", "nonsense"])
def test_codings_that_were_not_asked_for_are_broken(codings: str) -> None:
    """Unknown codings and stacks of more than two are refused."""
    with pytest.raises(BrokenBodyError):
        Inflater(codings, 1000)


@given(st.sampled_from(["gzip", "deflate", "br"]), st.binary(max_size=500))
def test_any_bytes_end_in_an_answer(codings: str, wire: bytes) -> None:
    """Rubbish never fails in another way than the declared ones."""
    with contextlib.suppress(BrokenBodyError, BodyTooLargeError):
        assert len(inflate(codings, wire, cap=1000)) <= 1000


def test_an_empty_body_needs_no_coding() -> None:
    """A body of no bytes is empty whatever its header says."""
    assert inflate("gzip", b"") == b""
