"""The fixed lines of a corpus."""

from __future__ import annotations

__all__ = [
    "GUIDANCE",
    "INTERNAL_HEADING",
    "REFERENCES_HEADING",
    "RESEARCH_RENDER_SENTINEL",
    "SOURCE_TEXT",
    "WEB_HEADING",
]

REFERENCES_HEADING = "VERIFIED REFERENCE LINKS (use these as citations):"
INTERNAL_HEADING = "EXISTING POSTS ON OUR SITE (link to these where relevant):"
WEB_HEADING = "RECENT WEB SOURCES (cite if relevant):"
SOURCE_TEXT = "  Source text: "

RESEARCH_RENDER_SENTINEL = "CITATION GUIDANCE:"
"""Occurs exactly once in every corpus that is not empty: a machine contract, by which a writer
recognises a finished corpus."""

GUIDANCE = (
    "- Cite with inline Markdown links, and only pages that are listed above.",
    "- Link a reference where its subject is first explained.",
    "- Attribute every figure, date and claim of fact to the source it comes from.",
    "- Link our own posts where they deepen the point being made.",
)
