"""Search: from a query to hits in the engine's own order, or to the reason why there are none."""

from __future__ import annotations

from citeflow.search.api import (
    Source,
    available_backends,
    aweb_search,
    aweb_search_outcome,
    aweb_search_verbose,
    aweb_search_with_provenance,
    backend_names,
    web_search,
    web_search_outcome,
    web_search_verbose,
    web_search_with_provenance,
)
from citeflow.search.backend import CHALLENGE_STATUS, SearchBackend
from citeflow.search.brave import BRAVE_KEY_ENV
from citeflow.search.chain import SearchChain
from citeflow.search.health import HEALTH, EngineState
from citeflow.search.links import resolve_redirect
from citeflow.search.outcome import (
    SearchAttempt,
    SearchHit,
    SearchOutcome,
    SearchProvenance,
    SearchStatus,
)
from citeflow.search.searxng import SEARXNG_URL_ENV

__all__ = [
    "BRAVE_KEY_ENV",
    "CHALLENGE_STATUS",
    "HEALTH",
    "SEARXNG_URL_ENV",
    "EngineState",
    "SearchAttempt",
    "SearchBackend",
    "SearchChain",
    "SearchHit",
    "SearchOutcome",
    "SearchProvenance",
    "SearchStatus",
    "Source",
    "available_backends",
    "aweb_search",
    "aweb_search_outcome",
    "aweb_search_verbose",
    "aweb_search_with_provenance",
    "backend_names",
    "resolve_redirect",
    "web_search",
    "web_search_outcome",
    "web_search_verbose",
    "web_search_with_provenance",
]
