"""JSON in and out, validated on the way in.

Unknown fields are passed over, so that a producer may be newer than its reader; a `schema` of
another name or major version is refused.
"""

from __future__ import annotations

import functools
from typing import TypeVar

import msgspec

from schemas.records import Record

__all__ = ["EventError", "decode", "encode"]

R = TypeVar("R", bound=Record)

_encoder = msgspec.json.Encoder()


class EventError(ValueError):
    """The event is not what its topic holds; the message names the field and the fault."""


@functools.cache
def _decoder(record_type: type[R]) -> msgspec.json.Decoder[R]:
    return msgspec.json.Decoder(record_type)


def decode(data: bytes | None, record_type: type[R]) -> R:
    """Read one event. Raises `EventError` for anything that is not a valid `record_type`."""
    if not data:
        raise EventError("the record has no value")
    try:
        record: R = _decoder(record_type).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise EventError(str(exc)) from exc
    except RecursionError as exc:
        raise EventError("the JSON is nested too deeply") from exc
    if not _same_major(record.schema, record_type.SCHEMA):
        raise EventError(f"schema {record.schema!r} is not {record_type.SCHEMA!r}")
    return record


def encode(record: Record) -> bytes:
    """Write one event: UTF-8 JSON with the fields in declaration order."""
    return _encoder.encode(record)


def _same_major(found: str, expected: str) -> bool:
    # "citeflow.pages.fetched/1.2" is readable where "citeflow.pages.fetched/1" is expected.
    return found == expected or found.startswith(expected + ".")
