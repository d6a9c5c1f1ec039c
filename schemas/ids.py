"""Deterministic identities, so that a redelivery is recognisable.

Every id is a UUIDv5 (RFC 9562) of a readable name in citeflow's own namespace: the same event
handled twice gives the same id.
"""

from __future__ import annotations

import uuid

__all__ = ["NAMESPACE", "context_event_id", "derived_request_id", "event_id"]

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "events.citeflow")


def event_id(request_id: str, stage: str, *parts: object) -> str:
    """The id of what `stage` emits for a request; `parts` tell several emissions apart."""
    # Length prefixes keep ("a", "bc") and ("ab", "c") apart.
    name = "".join(f"{len(text)}:{text};" for text in (request_id, stage, *map(str, parts)))
    return str(uuid.uuid5(NAMESPACE, name))


def context_event_id(request_id: str) -> str:
    """The id of the one `context.ready` value of a request."""
    return event_id(request_id, "context")


def derived_request_id(topic: str, partition: int, offset: int) -> str:
    """The request id of a record that names none: a function of its position in the log."""
    return event_id("", "request", topic, partition, offset)
