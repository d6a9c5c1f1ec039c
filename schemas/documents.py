"""The contracts as documents: a JSON Schema per topic, and one AsyncAPI description of them all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from schemas.records import (
    AlertDue,
    AuditFinding,
    ContextReady,
    EventRejected,
    JoinDue,
    PageFetched,
    Record,
    SearchHits,
    TopicRequested,
)

__all__ = ["RECORD_TYPES", "documents"]

RECORD_TYPES: Mapping[str, type[Record]] = {
    "topics.requested": TopicRequested,
    "search.hits": SearchHits,
    "pages.fetched": PageFetched,
    "context.ready": ContextReady,
    "context.replayed": ContextReady,
    "audit.findings": AuditFinding,
    "join.due": JoinDue,
    "alerts.due": AlertDue,
    "events.rejected": EventRejected,
}
"""The record type of each topic."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def documents() -> dict[str, str]:
    """The text of each document by its file name."""
    files = {f"{topic}.schema.json": _json(_schema(kind)) for topic, kind in RECORD_TYPES.items()}
    return {**files, "asyncapi.json": _json(_asyncapi())}


def _schema(kind: type[Record]) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)
    return {"$schema": _DIALECT, "$id": kind.SCHEMA, **schema}


def _asyncapi() -> dict[str, Any]:
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "citeflow events",
            "version": "1",
            "description": "Records are JSON, keyed by request id.",
        },
        "defaultContentType": "application/json",
        "channels": {
            topic: {
                "address": topic,
                "messages": {
                    kind.__name__: {
                        "summary": (kind.__doc__ or "").strip().splitlines()[0],
                        "payload": {"$ref": f"{topic}.schema.json"},
                    }
                },
            }
            for topic, kind in RECORD_TYPES.items()
        },
    }


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
