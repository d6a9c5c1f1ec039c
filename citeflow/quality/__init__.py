"""Which search results may be cited, and in which order."""

from __future__ import annotations

from citeflow.quality.models import DroppedSource, DropReason, Judgement, ScoredSource
from citeflow.quality.service import (
    QUALITY_SETTINGS,
    ResearchQualityService,
    result_position,
)
from citeflow.quality.urls import canonical_url, host_of

__all__ = [
    "QUALITY_SETTINGS",
    "DropReason",
    "DroppedSource",
    "Judgement",
    "ResearchQualityService",
    "ScoredSource",
    "canonical_url",
    "host_of",
    "result_position",
]
