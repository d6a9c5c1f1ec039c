"""Topics in, citation-ready corpora out: the public API.

Names are loaded when first used: a worker process that needs one small module of the package
does not pay for the whole of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from citeflow.context import InternalLink as InternalLink
    from citeflow.context import Reference as Reference
    from citeflow.errors import CiteflowError as CiteflowError
    from citeflow.errors import SettingsError as SettingsError
    from citeflow.errors import SSRFBlockedError as SSRFBlockedError
    from citeflow.errors import URLScrapeError as URLScrapeError
    from citeflow.fetch import FetchOutcome as FetchOutcome
    from citeflow.fetch import FetchStatus as FetchStatus
    from citeflow.fetch import PageFetcher as PageFetcher
    from citeflow.fetch.api import afetch_outcome as afetch_outcome
    from citeflow.fetch.api import afetch_text as afetch_text
    from citeflow.fetch.api import afetch_text_and_date as afetch_text_and_date
    from citeflow.fetch.api import ais_public_https as ais_public_https
    from citeflow.fetch.api import extract_published_date as extract_published_date
    from citeflow.fetch.api import fetch_outcome as fetch_outcome
    from citeflow.fetch.api import fetch_text as fetch_text
    from citeflow.fetch.api import fetch_text_and_date as fetch_text_and_date
    from citeflow.fetch.api import is_public_https as is_public_https
    from citeflow.fetch.api import strip_html_to_text as strip_html_to_text
    from citeflow.findings import Finding as Finding
    from citeflow.findings import Severity as Severity
    from citeflow.findings import collect_findings as collect_findings
    from citeflow.findings import emit_finding as emit_finding
    from citeflow.findings import set_finding_sink as set_finding_sink
    from citeflow.quality import DroppedSource as DroppedSource
    from citeflow.quality import DropReason as DropReason
    from citeflow.quality import ResearchQualityService as ResearchQualityService
    from citeflow.quality import ScoredSource as ScoredSource
    from citeflow.research import KNOWN_REFERENCES as KNOWN_REFERENCES
    from citeflow.research import RESEARCH_RENDER_SENTINEL as RESEARCH_RENDER_SENTINEL
    from citeflow.research import ResearchReport as ResearchReport
    from citeflow.research import ResearchService as ResearchService
    from citeflow.research import assemble as assemble
    from citeflow.research import get_known_references as get_known_references
    from citeflow.research import research_topic as research_topic
    from citeflow.search import SearchAttempt as SearchAttempt
    from citeflow.search import SearchChain as SearchChain
    from citeflow.search import SearchHit as SearchHit
    from citeflow.search import SearchOutcome as SearchOutcome
    from citeflow.search import SearchProvenance as SearchProvenance
    from citeflow.search import SearchStatus as SearchStatus
    from citeflow.search import Source as Source
    from citeflow.search import available_backends as available_backends
    from citeflow.search import aweb_search as aweb_search
    from citeflow.search import aweb_search_verbose as aweb_search_verbose
    from citeflow.search import aweb_search_with_provenance as aweb_search_with_provenance
    from citeflow.search import backend_names as backend_names
    from citeflow.search import resolve_redirect as resolve_redirect
    from citeflow.search import web_search as web_search
    from citeflow.search import web_search_verbose as web_search_verbose
    from citeflow.search import web_search_with_provenance as web_search_with_provenance
    from citeflow.settings import REGISTRY as REGISTRY
    from citeflow.settings import Setting as Setting
    from citeflow.settings import SiteConfig as SiteConfig
    from citeflow.web import WebResearcher as WebResearcher

__all__ = [
    "KNOWN_REFERENCES",
    "REGISTRY",
    "RESEARCH_RENDER_SENTINEL",
    "CiteflowError",
    "DropReason",
    "DroppedSource",
    "FetchOutcome",
    "FetchStatus",
    "Finding",
    "InternalLink",
    "PageFetcher",
    "Reference",
    "ResearchQualityService",
    "ResearchReport",
    "ResearchService",
    "SSRFBlockedError",
    "ScoredSource",
    "SearchAttempt",
    "SearchChain",
    "SearchHit",
    "SearchOutcome",
    "SearchProvenance",
    "SearchStatus",
    "Setting",
    "SettingsError",
    "Severity",
    "SiteConfig",
    "Source",
    "URLScrapeError",
    "WebResearcher",
    "afetch_outcome",
    "afetch_text",
    "afetch_text_and_date",
    "ais_public_https",
    "assemble",
    "available_backends",
    "aweb_search",
    "aweb_search_verbose",
    "aweb_search_with_provenance",
    "backend_names",
    "collect_findings",
    "emit_finding",
    "extract_published_date",
    "fetch_outcome",
    "fetch_text",
    "fetch_text_and_date",
    "get_known_references",
    "is_public_https",
    "research_topic",
    "resolve_redirect",
    "set_finding_sink",
    "strip_html_to_text",
    "web_search",
    "web_search_verbose",
    "web_search_with_provenance",
]

_HOME = {
    "InternalLink": "citeflow.context",
    "Reference": "citeflow.context",
    "CiteflowError": "citeflow.errors",
    "SSRFBlockedError": "citeflow.errors",
    "SettingsError": "citeflow.errors",
    "URLScrapeError": "citeflow.errors",
    "FetchOutcome": "citeflow.fetch",
    "FetchStatus": "citeflow.fetch",
    "PageFetcher": "citeflow.fetch",
    "afetch_outcome": "citeflow.fetch.api",
    "afetch_text": "citeflow.fetch.api",
    "afetch_text_and_date": "citeflow.fetch.api",
    "ais_public_https": "citeflow.fetch.api",
    "extract_published_date": "citeflow.fetch.api",
    "fetch_outcome": "citeflow.fetch.api",
    "fetch_text": "citeflow.fetch.api",
    "fetch_text_and_date": "citeflow.fetch.api",
    "is_public_https": "citeflow.fetch.api",
    "strip_html_to_text": "citeflow.fetch.api",
    "Finding": "citeflow.findings",
    "Severity": "citeflow.findings",
    "collect_findings": "citeflow.findings",
    "emit_finding": "citeflow.findings",
    "set_finding_sink": "citeflow.findings",
    "DropReason": "citeflow.quality",
    "DroppedSource": "citeflow.quality",
    "ResearchQualityService": "citeflow.quality",
    "ScoredSource": "citeflow.quality",
    "KNOWN_REFERENCES": "citeflow.research",
    "RESEARCH_RENDER_SENTINEL": "citeflow.research",
    "ResearchReport": "citeflow.research",
    "ResearchService": "citeflow.research",
    "assemble": "citeflow.research",
    "get_known_references": "citeflow.research",
    "research_topic": "citeflow.research",
    "SearchChain": "citeflow.search",
    "SearchHit": "citeflow.search",
    "SearchOutcome": "citeflow.search",
    "SearchProvenance": "citeflow.search",
    "SearchStatus": "citeflow.search",
    "SearchAttempt": "citeflow.search",
    "Source": "citeflow.search",
    "available_backends": "citeflow.search",
    "aweb_search": "citeflow.search",
    "aweb_search_verbose": "citeflow.search",
    "aweb_search_with_provenance": "citeflow.search",
    "backend_names": "citeflow.search",
    "resolve_redirect": "citeflow.search",
    "web_search": "citeflow.search",
    "web_search_verbose": "citeflow.search",
    "web_search_with_provenance": "citeflow.search",
    "REGISTRY": "citeflow.settings",
    "Setting": "citeflow.settings",
    "SiteConfig": "citeflow.settings",
    "WebResearcher": "citeflow.web",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
