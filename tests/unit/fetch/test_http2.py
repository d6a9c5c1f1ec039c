"""Counting HTTP/2 frames on the wire."""

from __future__ import annotations

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.fetch.http2 import FrameCounter
from citeflow.fetch.limits import Http2Limits
from tests.support.http2 import DATA, HEADERS, PING, SETTINGS, frame

FEW = Http2Limits(frames=10, bytes_per_frame=100, frames_without_text=5, bytes_of_others=1_000)


def counted(data: bytes, piece: int, limits: Http2Limits = FEW) -> bool:
    """Whether a connection may send this, read in pieces."""
    counter = FrameCounter(limits)
    try:
        for start in range(0, len(data), piece):
            counter.feed(data[start : start + piece])
    except httpcore.RemoteProtocolError:
        return False
    return True


@given(
    st.lists(st.sampled_from([DATA, HEADERS, PING, SETTINGS, 99]), max_size=12),
    st.sampled_from([0, 1, 60, 200]),
)
def test_how_bytes_arrive_does_not_matter(kinds: list[int], size: int) -> None:
    """One by one or all at once: the frames are the same, and so is the answer."""
    data = b"".join(frame(kind, b"x" * size, stream=1) for kind in kinds)
    others = sum(kind != DATA for kind in kinds)
    empty = sum(kind == DATA for kind in kinds) if not size else 0
    allowed = others + empty <= 5 and others * size <= 1_000 and len(kinds) <= 10 + len(data) // 100
    at_once = counted(data, 10_000)
    assert at_once == allowed
    # In pieces a frame is counted before the bytes that follow it are known.
    assert counted(data, 1) <= at_once


@pytest.mark.parametrize("size", [200, 1_400, 16_384])
def test_a_page_in_ordinary_frames_is_not_a_flood(size: int) -> None:
    """Settings, a window update, headers, and twelve megabytes of body."""
    start = frame(SETTINGS, b"\0" * 18) + frame(8, b"\0\0\x40\0") + frame(HEADERS, b"h" * 900)
    body = frame(DATA, b"x" * size, stream=1) * (12_000_000 // size)
    assert counted(start + body, 16_384, Http2Limits())


def test_each_request_has_its_own_count() -> None:
    """A connection that serves many pages is not a flood either."""
    counter = FrameCounter(FEW)
    for _ in range(20):
        counter.begin()
        counter.feed(frame(HEADERS, b"h") + frame(DATA, b"x" * 50) * 4)
