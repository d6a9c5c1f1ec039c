"""A request as the line works with it: every default filled in from the event itself."""

from __future__ import annotations

import re

import msgspec

from agents.base import Inbound
from citeflow.errors import SettingsError
from citeflow.research import ASSEMBLE_SETTINGS
from citeflow.settings import REGISTRY, parse_value
from schemas import EventError, TopicRequested, derived_request_id

__all__ = ["REQUEST_ID_HEADER", "request_id_of", "resolve_request"]

REQUEST_ID_HEADER = "citeflow-request-id"
"""Names the request of a record that is sent again and had its id from its first position."""

_USABLE_KEY = re.compile(rb"[A-Za-z0-9._:@/+=-]{1,128}")


def request_id_of(event: Inbound[TopicRequested]) -> str:
    """The record's own request id, else its header's, its key, or one from its position."""
    if event.record.request_id:
        return event.record.request_id
    origin = event.origin
    for name in (origin.header(REQUEST_ID_HEADER), origin.key):
        if name and _USABLE_KEY.fullmatch(name):
            return name.decode("ascii")
    return derived_request_id(origin.topic, origin.partition, origin.offset)


def resolve_request(event: Inbound[TopicRequested]) -> TopicRequested:
    """The request with its id, time and cleaned topic filled in.

    Raises `EventError` for a topic without a visible character, and for an option that is not a
    setting a request may change or whose value cannot be read.
    """
    record = event.record
    # Control and format characters have no place in a query; NUL breaks search engines.
    topic = " ".join("".join(c if c.isprintable() else " " for c in record.topic).split())
    if not topic:
        raise EventError("topic: no visible character")
    for name, value in record.options.items():
        if name not in ASSEMBLE_SETTINGS:
            raise EventError(f"options: {name!r} is not a setting that a request can change")
        try:
            parse_value(REGISTRY[name], _text(value))
        except SettingsError as exc:
            raise EventError(f"options: {exc}") from exc
    return msgspec.structs.replace(
        record,
        topic=topic,
        request_id=request_id_of(event),
        requested_at=record.requested_at or event.origin.timestamp,
        options={name: _text(value) for name, value in record.options.items()},
    )


def _text(value: str | bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
