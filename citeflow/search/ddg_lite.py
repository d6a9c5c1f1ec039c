"""DuckDuckGo's lite version: another renderer of the same index, challenged independently.

It is asked through the same client and workers as the main one, see `citeflow.search.duckduckgo`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citeflow.search.duckduckgo import DuckDuckGoBackend

if TYPE_CHECKING:
    from citeflow.settings import SiteConfig
    from citeflow.workers import WorkerPool

__all__ = ["LITE_URL", "DdgLiteBackend"]

LITE_URL = "https://lite.duckduckgo.com/lite/"
"""The page that the lite version's own form asks."""


class DdgLiteBackend(DuckDuckGoBackend):
    """`lite.duckduckgo.com` in the engine's own order."""

    name = "ddg_lite"
    _page = "lite"

    def __init__(
        self,
        site_config: SiteConfig,
        *,
        engine_url: str = LITE_URL,
        pool: WorkerPool | None = None,
    ) -> None:
        super().__init__(site_config, engine_url=engine_url, pool=pool)
