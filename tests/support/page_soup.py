"""Random pages, and answers around them: markup, text and rubbish in any order, by Hypothesis."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

__all__ = ["answers", "drawn", "pages"]

_TAGS = (
    "div p span a b i table tr td th ul ol li h1 h2 h3 pre code article main nav aside footer form",
    "input select option script style noscript template svg path iframe header section blockquote",
    "br hr img meta link title body html head time figure textarea button dl dt dd x-y frameset",
)
_NAMES = st.sampled_from(" ".join(_TAGS).split()) | st.text("abcxyz:-0", min_size=1, max_size=8)
_WORDS = [
    "the", "harbour", "channel", "Wasser", "cookies", "404", "&amp;", "&#x0;", "&#xD800;", "<", ">",
    "\u043c\u043e\u0441\u0442", "\u6e2f", "\u00e9", "\u202e", "\u200d", "\ufffd", "\x00",
]  # fmt: skip
_ATTRIBUTES = [
    "class=comment", "id='main'", "style=display:none", "hidden", 'href="/x"', "role=navigation",
    "datetime=2020-02-02", "content=2020-02-02", "name=date", "property='og:title'", "x" * 300,
    'type="application/ld+json"', "charset=shift_jis", "a=b " * 60, "'", '"',
]  # fmt: skip
_ODD = ["<!--", "-->", "<![CDATA[", "]]>", "<?php", "{", '{"a":[', "%PDF-1.7", "\t", "\n\n"]
# Pieces are repeated, because what breaks parsers is mostly more of the same.
_TIMES = st.sampled_from([1, 1, 1, 1, 1, 3, 40, 400])
_LARGEST = 300_000

_OPENING = st.builds(
    lambda name, attributes: f"<{name} {' '.join(attributes)}>",
    _NAMES,
    st.lists(st.sampled_from(_ATTRIBUTES) | st.text(max_size=12), max_size=3),
)
_SENTENCES = st.integers(0, 99).map(lambda n: f"Sentence {n} of a page, with words in it, is read.")
_TEXT = st.lists(st.sampled_from(_WORDS) | st.text(max_size=6), max_size=40).map(" ".join)
_PIECE = st.one_of(
    _OPENING,
    _OPENING,
    _SENTENCES,
    _NAMES.map(lambda name: f"</{name}>"),
    _TEXT,
    st.sampled_from(_ODD),
)
_RUBBISH = st.tuples(st.integers(0, 9999), st.binary(max_size=20))
_CODECS = st.sampled_from(["utf-8", "utf-8", "utf-16", "latin-1", "shift_jis"])
# In tenths; most are whole.
_CUTS = st.sampled_from([10] * 60 + [*range(10)])


@st.composite
def pages(draw: st.DrawFn) -> bytes:
    """One page, from nothing to a few hundred kilobytes."""
    pieces = draw(st.lists(st.tuples(_PIECE, _TIMES), max_size=40))
    text = "".join(piece * times for piece, times in pieces)[:_LARGEST]
    data = text.encode(draw(_CODECS), "replace")
    for at, rubbish in draw(
        st.lists(st.tuples(st.integers(0, 9999), st.binary(max_size=20)), max_size=4)
    ):
        place = at * len(data) // 10_000
        data = data[:place] + rubbish + data[place:]
    return data


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """A response with a page, in order or not."""
    body = draw(pages())
    coding = draw(st.sampled_from([""] * 12 + ["gzip"] * 4 + ["br", "deflate", "gzip, gzip", "x"]))
    if coding == "gzip" and draw(st.integers(0, 4)):
        body = gzip.compress(body)
    kind = draw(st.sampled_from([
        *["text/html"] * 8, "text/html; charset=latin-1", "text/plain", "application/pdf",
        "application/json", "", "image/png", "text/html; charset=\xff",
    ]))  # fmt: skip
    status = draw(
        st.sampled_from(["200 OK"] * 12 + ["404 No", "302 Found", "503 Busy", "999", "x"])
    )
    place = draw(
        st.sampled_from(["/"] * 20 + ["//", "http://127.0.0.1/", "?", "\x00", "http://[::1"])
    )
    extra = draw(st.sampled_from([""] * 10 + ["Retry-After: x\r\n", "X: " + "y" * 70_000 + "\r\n"]))
    length = len(body) + draw(st.sampled_from([0] * 12 + [7, -1]))
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Encoding: {coding}\r\n"
        f"Content-Length: {length}\r\nLocation: {place}\r\n{extra}\r\n"
    )
    whole = head.encode("latin-1") + body
    cut = draw(_CUTS)
    return whole[: cut * len(whole) // 10] if cut < 10 else whole


def drawn(strategy: st.SearchStrategy[bytes], count: int, number: int) -> Iterator[bytes]:
    """`count` examples, the same for the same `number`, in portions so that none are kept."""
    for portion in range(0, count, 250):
        yield from _portion(strategy, min(250, count - portion), f"{number}.{portion}")


def _portion(strategy: st.SearchStrategy[bytes], wanted: int, name: str) -> list[bytes]:
    found: list[bytes] = []

    @seed(random.Random(name).getrandbits(32))
    @settings(
        max_examples=wanted,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: bytes) -> None:
        found.append(example)

    collect()
    return found[:wanted]
