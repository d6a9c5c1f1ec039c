"""How alike two snippets are, word by word.

The measure is the normalised Indel similarity of the word lists, 2 * LCS / (len(a) + len(b)):
symmetric, and never below the block ratio of `difflib`, which depends on the argument order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rapidfuzz.distance import Indel

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["word_similarity"]


def word_similarity(left: Sequence[str], right: Sequence[str], *, at_least: float = 0.0) -> float:
    """Similarity in 0..1 of two word lists; 0.0 when either is empty or it is below `at_least`."""
    if not left or not right:
        return 0.0
    return float(Indel.normalized_similarity(left, right, score_cutoff=at_least))
