"""How much a search result's snippet says: long enough, on the topic, and not an advertisement.

Score: 0.5, plus 0.3 above 30 words or 0.2 above 20, plus 0.2 times the share of the query's
terms it contains, minus 0.3 when it reads like an advertisement or an error page; clamped to
0..1. The constants are those of the system citeflow reimplements. There the penalty followed
from any occurrence of words such as "promoted" or "not found"; here from phrases and labels, so
that "she was promoted to editor" costs nothing.
"""

from __future__ import annotations

import re

from citeflow.quality.words import Terms, count_words, text_width

__all__ = ["is_thin", "reads_like_ad", "snippet_quality"]

_BASE = 0.5
_LENGTH_STEPS = ((30, 0.3), (20, 0.2))
_TERM_SHARE = 0.2
_AD_PENALTY = 0.3

# A label stands alone: between the start, a sentence end or a separator, and the same after it.
_LABEL_START = r"(?:^\s*|[.!?:|·•\[(\u2013\u2014]\s*|\s-\s+)"
_LABEL_END = r"(?=\s*(?:$|[.!:|·•\])\u2013\u2014]|\s-\s))"
_AD = re.compile(
    rf"""
    \bclick\s+here\b
    | \bbuy\s+(?:it\s+)?now\b
    | \blimited[\s-]+time\s+(?:offer|deal|sale|discount|only|promotion)s?\b
    | \bfor\s+a\s+limited\s+time\b
    | {_LABEL_START}(?:sponsored|advertisements?|promoted){_LABEL_END}
    | \b(?:sponsored|promoted)\s+(?:ad|advert|advertisement|article|content|link|listing|post|
        product|result|story|stories)s?\b
    | {_LABEL_START}(?:sponsored|promoted)\s+by\b
    | \berror\s+404\b | \b404\s+(?:error|not\s+found)\b
    | \b(?:page|file|article|document|url|content)\s+(?:was\s+|is\s+|could\s+|can\s*)?not\s+
        (?:be\s+)?found\b
    | {_LABEL_START}not\s+found{_LABEL_END}
    """,
    re.IGNORECASE | re.VERBOSE,
)
_AD_WORDS = ("click", "buy", "limited", "sponsored", "advertisement", "promoted", "404", "found")


def is_thin(snippet: str, *, min_length: int, min_words: int) -> bool:
    """True when `snippet` is under either minimum; equal passes."""
    return text_width(snippet) < min_length or count_words(snippet) < min_words


def reads_like_ad(snippet: str) -> bool:
    """True when `snippet` holds a phrase or a label of advertisements or error pages."""
    folded = snippet.casefold()
    # Every alternative of the pattern holds one of these; looking for them is far quicker.
    if not any(word in folded for word in _AD_WORDS):
        return False
    return _AD.search(snippet) is not None


def snippet_quality(snippet: str, terms: Terms) -> float:
    """Score `snippet` in 0..1; `terms` are those of the query, none of them: no share added."""
    score = _BASE
    words = count_words(snippet)
    for more_than, bonus in _LENGTH_STEPS:
        if words > more_than:
            score += bonus
            break
    if len(terms):
        score += _TERM_SHARE * terms.matched(snippet) / len(terms)
    if reads_like_ad(snippet):
        score -= _AD_PENALTY
    return min(1.0, max(0.0, score))
