"""Broader forms of a query, for when every engine challenged it as it was."""

from __future__ import annotations

__all__ = ["broader_forms"]

# Fewer words than this no longer say what was asked. The ladder is the specification's: the
# leading half each time, so that an entity named in the first half stays whole.
_FLOOR_WORDS = 3


def broader_forms(query: str) -> list[str]:
    """The leading `max(3, n // 2)` words, again and again down to three: 12 words give 6 and 3."""
    words = query.split()
    forms = []
    while len(words) > _FLOOR_WORDS:
        words = words[: max(_FLOOR_WORDS, len(words) // 2)]
        forms.append(" ".join(words))
    return forms
