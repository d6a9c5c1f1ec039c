"""Known references: curated official documentation, offered when the topic names its keyword.

A keyword matches when its tokens stand next to each other in the topic as whole tokens, whatever
their case, with an optional plural `s` (`llm` matches "LLMs compared"). Tokens keep `.`, `/`,
`-`, `+` and `#` inside them (`next.js`, `ci/cd`, `c++`); text joined by `/` or `-` also counts as
its parts ("Docker/Redis"). So "storage" does not contain `rag`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citeflow.context._default_references import DEFAULT_REFERENCES
from citeflow.context.untrusted import safe_url

if TYPE_CHECKING:
    from citeflow.settings import SiteConfig

__all__ = [
    "KNOWN_REFERENCES",
    "MAX_REFERENCES",
    "Reference",
    "get_known_references",
    "match_references",
]

logger = logging.getLogger(__name__)

ReferenceMap = dict[str, list[dict[str, str]]]

_DEFAULT_KNOWN_REFERENCES: ReferenceMap = DEFAULT_REFERENCES
KNOWN_REFERENCES = _DEFAULT_KNOWN_REFERENCES
"""The built-in map, under the name older callers use."""

MAX_REFERENCES = 8
"""References rendered at most."""

_TOKEN = re.compile(r"[^\W_]+(?:[./+#&_-][^\W_]+)*(?:\+\+|#)?")
_JOINT = re.compile(r"[/-]")


@dataclass(frozen=True, slots=True)
class Reference:
    """One page of official documentation."""

    title: str
    url: str


def _entry(raw: object) -> dict[str, str] | None:
    if not isinstance(raw, Mapping) or not raw.get("url"):
        return None
    url = str(raw["url"]).strip()
    if safe_url(url) is None:
        return None
    title = raw.get("title")
    return {"title": url if title is None or not str(title).strip() else str(title), "url": url}


def _read_map(raw: Mapping[Any, Any]) -> ReferenceMap:
    found: ReferenceMap = {}
    for key, values in raw.items():
        keyword = str(key).strip().lower()
        # A keyword without a token would match every topic, or none.
        if not isinstance(values, list) or not _TOKEN.search(keyword):
            continue
        entries = [entry for value in values if (entry := _entry(value)) is not None]
        if entries:
            found.setdefault(keyword, []).extend(entries)
    return found


def get_known_references(*, site_config: SiteConfig) -> ReferenceMap:
    """The active reference map: `{keyword: [{"title": ..., "url": ...}, ...]}`.

    A valid `known_references_json` replaces the built-in map; what in it is unusable is skipped
    (keywords without a letter or digit, values that are not lists, entries without an http or
    https address). When it is blank the built-in map itself is returned, likewise, with one
    warning, when it is malformed or nothing usable is in it. Keywords that differ by case alone
    are merged, a missing title becomes the address.
    """
    text = site_config.get_str("known_references_json")
    if not text.strip():
        return _DEFAULT_KNOWN_REFERENCES
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as exc:
        logger.warning("known_references_json is not JSON, built-in references used: %s", exc)
        return _DEFAULT_KNOWN_REFERENCES
    found = _read_map(raw) if isinstance(raw, dict) else {}
    if not found:
        logger.warning(
            "known_references_json is not an object {keyword: [{title, url}]} with an entry that "
            "can be used, built-in references used"
        )
        return _DEFAULT_KNOWN_REFERENCES
    return found


def _tokens(text: str) -> tuple[list[str], list[str]]:
    whole = _TOKEN.findall(text.lower())
    return whole, [part for token in whole for part in _JOINT.split(token) if part]


def _contains(topic: Sequence[str], keyword: Sequence[str]) -> bool:
    size = len(keyword)
    return any(
        all(
            said in (wanted, wanted + "s")
            for said, wanted in zip(topic[start : start + size], keyword, strict=True)
        )
        for start in range(len(topic) - size + 1)
    )


def match_references(
    topic: str, references_map: Mapping[str, Sequence[Mapping[str, str]]]
) -> list[Reference]:
    """The references whose keyword `topic` names, in map order, at most 8, no address twice."""
    whole, parts = _tokens(topic)
    found: dict[str, Reference] = {}
    for keyword, entries in references_map.items():
        keyword_whole, keyword_parts = _tokens(keyword)
        if not keyword_whole or not (
            _contains(whole, keyword_whole) or _contains(parts, keyword_parts)
        ):
            continue
        for entry in entries:
            url = entry["url"]
            found.setdefault(url, Reference(entry["title"], url))
    return list(found.values())[:MAX_REFERENCES]
