"""Search: from a query to hits in the engine's own order, or to the reason why there are none."""

from __future__ import annotations

from citeflow.search.chain import SearchChain
from citeflow.search.outcome import SearchHit, SearchOutcome, SearchProvenance, SearchStatus

__all__ = ["SearchChain", "SearchHit", "SearchOutcome", "SearchProvenance", "SearchStatus"]
