"""Rendering a corpus: references, own posts and web sources as citation-ready Markdown.

Whatever the inputs hold, the result has exactly the headings, list items and links that this
module writes, and the sentinel once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citeflow.context.excerpts import START, Excerpt, choose_excerpts
from citeflow.context.headings import (
    GUIDANCE,
    INTERNAL_HEADING,
    REFERENCES_HEADING,
    RESEARCH_RENDER_SENTINEL,
    SOURCE_TEXT,
    WEB_HEADING,
)
from citeflow.context.links import MAX_INTERNAL_LINKS, InternalLink
from citeflow.context.references import MAX_REFERENCES, Reference
from citeflow.context.untrusted import (
    clean_line,
    escape_inline,
    escape_lines,
    escape_title,
    safe_slug,
    safe_url,
)
from citeflow.quality.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from citeflow.quality.models import ScoredSource

__all__ = ["link", "render_corpus"]

SNIPPET_CHARS = 100
# A title is a label; a page that declares a whole text as its title must not fill the corpus.
_TITLE_CHARS = 200
_BETWEEN_PASSAGES = "\n\u2026\n"


def link(title: str, url: str) -> str | None:
    """`[title](url)` from an untrusted title and address, None when the address is unusable."""
    target = safe_url(url)
    if target is None:
        return None
    return f"[{_label(title, host_of(target))}]({target})"


def _label(title: str, fallback: str) -> str:
    return escape_title(clean_line(title)[:_TITLE_CHARS].rstrip() or fallback)


def _section(heading: str, items: Iterable[str]) -> list[str]:
    lines = list(items)
    return ["\n".join([heading, *lines])] if lines else []


def _internal_item(post: InternalLink) -> str | None:
    slug = safe_slug(post.slug)
    return None if slug is None else f"- [{_label(post.title, slug)}](/posts/{slug})"


def _source_item(source: ScoredSource, excerpts: Sequence[Excerpt]) -> str | None:
    linked = link(source.title, source.url)
    if linked is None:
        return None
    item = f"- {linked}: {_snippet(source.snippet)}"
    excerpt = _BETWEEN_PASSAGES.join(each.text for each in excerpts)
    return f"{item}\n{SOURCE_TEXT}{escape_lines(excerpt)}" if excerpt else item


def _snippet(snippet: str) -> str:
    return escape_inline(clean_line(snippet)[:SNIPPET_CHARS]).replace("`", "\\`")


def render_corpus(
    *,
    references: Sequence[Reference] = (),
    internal_links: Sequence[InternalLink] = (),
    sources: Sequence[ScoredSource] = (),
    excerpt_chars: int = 600,
    excerpt_mode: str = START,
    topic: str = "",
    excerpts: Sequence[Sequence[Excerpt]] | None = None,
) -> str:
    """The corpus: up to four sections separated by one blank line, without a trailing newline.

    `excerpt_chars` is how much of its page is shown under each source, 0 for none: the beginning,
    or with `excerpt_mode` `relevant` the passages that share most words with `topic`. At most 8
    references and 5 own posts; entries without a usable address are left out. Nothing to
    show: `""`. `excerpts`, for each source, when whoever calls has chosen them already.
    """
    reference_items = (link(each.title, each.url) for each in references[:MAX_REFERENCES])
    internal_items = (_internal_item(each) for each in internal_links[:MAX_INTERNAL_LINKS])
    if excerpts is None:
        excerpts = [
            choose_excerpts(each.content, excerpt_chars, mode=excerpt_mode, topic=topic)
            for each in sources
        ]
    source_items = map(_source_item, sources, excerpts)
    sections = [
        *_section(REFERENCES_HEADING, (f"- {item}" for item in reference_items if item)),
        *_section(INTERNAL_HEADING, (item for item in internal_items if item)),
        *_section(WEB_HEADING, (item for item in source_items if item)),
    ]
    if not sections:
        return ""
    return "\n\n".join([*sections, "\n".join([RESEARCH_RENDER_SENTINEL, *GUIDANCE])])
