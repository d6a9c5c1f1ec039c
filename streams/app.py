"""The entry point for Faust's own command line: `faust -A streams.app worker`.

The topics must exist (`python -m streams topics create`). `python -m streams worker` does the
same with a look at the topics first, and with a bounded stop.
"""

from __future__ import annotations

from citeflow.settings import SiteConfig
from streams.apps import build_combined_app
from streams.profile import load_config

__all__ = ["app"]

app = build_combined_app(load_config(), SiteConfig())
