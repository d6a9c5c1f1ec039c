"""What goes into a corpus besides web sources, and how the whole is rendered."""

from __future__ import annotations

from citeflow.context.headings import RESEARCH_RENDER_SENTINEL
from citeflow.context.links import InternalLink, find_internal_links
from citeflow.context.references import (
    KNOWN_REFERENCES,
    Reference,
    get_known_references,
    match_references,
)
from citeflow.context.render import render_corpus
from citeflow.context.untrusted import safe_url

__all__ = [
    "KNOWN_REFERENCES",
    "RESEARCH_RENDER_SENTINEL",
    "InternalLink",
    "Reference",
    "find_internal_links",
    "get_known_references",
    "match_references",
    "render_corpus",
    "safe_url",
]
