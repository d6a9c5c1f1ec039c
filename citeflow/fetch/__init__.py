"""Reading pages of the open web: guarded connections, bounded bodies, main text.

`PageFetcher.fetch` is the one way in. Addresses are vetted where the connection is made
(`network`), bodies are capped while they inflate (`inflate`), and text is found in worker
processes that can be killed (`extract`).
"""

from __future__ import annotations

from citeflow.fetch.addresses import is_public_address
from citeflow.fetch.fetcher import PageFetcher
from citeflow.fetch.outcome import FetchOutcome, FetchStatus
from citeflow.fetch.user_agent import build_crawler_ua

__all__ = ["FetchOutcome", "FetchStatus", "PageFetcher", "build_crawler_ua", "is_public_address"]
