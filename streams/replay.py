"""Replay: the requests again, or their judging again from the log without touching the web.

Nothing here joins a consumer group or commits an offset, and findings are not sent: a replay
alerts nobody.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass

import msgspec

import schemas
from agents import Inbound
from agents.request import request_id_of
from agents.score import build_context
from citeflow.errors import SettingsError
from citeflow.findings import collect_findings
from citeflow.research import ASSEMBLE_SETTINGS
from citeflow.settings import REGISTRY, SiteConfig, parse_value
from streams.stored import Selection, StoredRequest, selected_records

__all__ = ["Refed", "check_overrides", "identified", "refed_requests", "rejoin"]


def check_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """The settings to replay under. Raises `SettingsError` for one that judging does not read."""
    for key, value in overrides.items():
        if key not in ASSEMBLE_SETTINGS:
            known = ", ".join(sorted(ASSEMBLE_SETTINGS))
            raise SettingsError(f"{key}: judging does not read it; it reads {known}")
        parse_value(REGISTRY[key], value)
    return dict(overrides)


def rejoin(stored: StoredRequest, overrides: Mapping[str, str]) -> schemas.ContextReady:
    """The context of a past request, judged and rendered again.

    Without overrides it is the stored context, byte for byte, when the code is the same.
    """
    settings = SiteConfig({**stored.hits.settings, **overrides}, environ={})
    hits = msgspec.structs.replace(stored.hits, settings=settings.overrides(ASSEMBLE_SETTINGS))
    missed = hits.pages_wanted and len(stored.pages) < len(hits.hits)
    if stored.context is not None:
        missed = "deadline_passed" in stored.context.reasons
    with collect_findings():
        return build_context(hits, dict(sorted(stored.pages.items())), deadline_passed=missed)


def identified(context: schemas.ContextReady, run_id: str) -> schemas.ContextReady:
    """The context as a value of its own: the same run gives it the same `event_id`."""
    event_id = schemas.event_id(context.request_id, "replayed", run_id)
    return msgspec.structs.replace(context, event_id=event_id)


@dataclass(frozen=True, slots=True)
class Refed:
    """A past request to be made again, under a new request id; `offset` is the old record's."""

    request: schemas.TopicRequested
    partition: int
    offset: int


async def refed_requests(
    broker: str, selection: Selection, run_id: str, *, start: dict[int, int] | None = None
) -> AsyncGenerator[Refed, None]:
    """The selected requests, each with an id made of its old one and the run's.

    Deadlines are left out: they have passed. So is the time of the request: it is made now.
    """
    async for record in selected_records(broker, "topics.requested", selection, start=start):
        try:
            request = schemas.decode(record.value, schemas.TopicRequested)
        except schemas.EventError:
            continue  # it was rejected
        origin = schemas.Origin(record.topic, record.partition, record.offset, key=record.key)
        request_id = request_id_of(Inbound(request, origin))
        if selection.takes_request(request_id, request.topic):
            again = msgspec.structs.replace(
                request,
                request_id=schemas.event_id(request_id, "refeed", run_id),
                deadline=None,
                requested_at=None,
            )
            yield Refed(again, record.partition, record.offset)
