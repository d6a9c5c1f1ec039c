"""The part of a page's text that is shown under its source."""

from __future__ import annotations

import re
from bisect import bisect_left

from citeflow.quality.words import Terms

__all__ = ["choose_excerpt"]

# Nearer starts hardly change what the excerpt holds; this bounds the work that a page of nothing
# but sentence ends can cause to 200 looks at 8000 characters, the most a page may have.
_MIN_PASSAGE_CHARS = 40
# A passage starts at the text's start, after a line break, or after the end of a sentence.
_PASSAGE_START = re.compile(r"(?:^|\n|(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f]))(?=\S)")


def choose_excerpt(text: str, topic: str, max_chars: int) -> str:
    """At most `max_chars` characters of `text`, from where it says most about `topic`.

    Text that fits is kept whole. Of longer text the excerpt is one stretch that starts with the
    passage from which on most of the topic's terms occur; the beginning wins ties, so without
    a topic, or when nothing matches, it is the beginning.
    """
    if len(text) <= max_chars or max_chars <= 0:
        return text[: max(0, max_chars)]
    places = [starts for starts in Terms(topic).places(text) if starts]

    def matches(start: int) -> int:
        end = start + max_chars
        return sum(
            index < len(starts) and starts[index] < end
            for starts in places
            for index in (bisect_left(starts, start),)
        )

    best_start, best_matches, last_start = 0, matches(0), 0
    for found in _PASSAGE_START.finditer(text):
        start = found.end()
        if best_matches == len(places):
            break
        if start - last_start < _MIN_PASSAGE_CHARS:
            continue
        last_start = start
        if (count := matches(start)) > best_matches:
            best_start, best_matches = start, count
    return text[best_start : best_start + max_chars].rstrip()
