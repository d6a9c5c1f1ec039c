"""What the log holds of past requests: their hits, the pages that were judged, their contexts.

All of a request stands in the same partition of every topic, so the log is read partition by
partition; what is held in memory is one partition's selected requests.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import schemas
from streams.log_reader import log_end, read_log

__all__ = ["Selection", "StoredRequest", "selected_records", "stored_requests"]

R = TypeVar("R", bound=schemas.Record)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records of the source topic; empty fields select all.

    Offsets are from `from_offset` on and before `to_offset`, in every selected partition. Times
    are record timestamps, from `since` on and before `until`: they are compared here, record by
    record, because not every broker can seek by time. `query` is looked for in the topic text,
    whatever its case.
    """

    partitions: Collection[int] = ()
    from_offset: int | None = None
    to_offset: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    request_ids: Collection[str] = ()
    query: str = ""

    def takes_place(self, record: Any) -> bool:
        """Whether a record stands where and when it was asked for."""
        if self.from_offset is not None and record.offset < self.from_offset:
            return False
        if self.to_offset is not None and record.offset >= self.to_offset:
            return False
        seconds = record.timestamp / 1000
        if self.since is not None and seconds < self.since.timestamp():
            return False
        return self.until is None or seconds < self.until.timestamp()

    def takes_request(self, request_id: str, topic: str) -> bool:
        """Whether a request is one that was asked for."""
        if self.request_ids and request_id not in self.request_ids:
            return False
        return self.query.lower() in topic.lower()


@dataclass(slots=True)
class StoredRequest:
    """One past request. `offset` is that of its hits; `pages` are by rank."""

    hits: schemas.SearchHits
    partition: int
    offset: int
    pages: dict[int, schemas.PageFetched] = field(default_factory=dict)
    context: schemas.ContextReady | None = None


async def selected_records(
    broker: str, topic: str, selection: Selection, *, start: dict[int, int] | None = None
) -> AsyncGenerator[Any, None]:
    """The raw records of `topic` that stand where the selection says, partition by partition."""
    # The ends are taken once: a replay may itself write to the topic that it reads.
    ends = await log_end(broker, topic)
    for partition in sorted(ends):
        if selection.partitions and partition not in selection.partitions:
            continue
        first = max((start or {}).get(partition, 0), selection.from_offset or 0)
        async for record in read_log(
            broker, topic, partition=partition, start={partition: first}, end=ends
        ):
            if selection.takes_place(record):
                yield record


async def stored_requests(
    broker: str, selection: Selection, *, start: dict[int, int] | None = None
) -> AsyncGenerator[StoredRequest, None]:
    """The selected requests with everything the log has of them, partition by partition.

    Of a request that was searched twice the first search counts, of a page read twice the first
    reading, as in the join. `start` skips the hits before these offsets, by partition.
    """
    partition, found = -1, dict[str, StoredRequest]()
    async for record in selected_records(broker, "search.hits", selection, start=start):
        if record.partition != partition:
            for request in await _completed(broker, partition, found):
                yield request
            partition, found = record.partition, {}
        hits = _read(record, schemas.SearchHits)
        if hits is None or hits.request_id in found:
            continue
        if selection.takes_request(hits.request_id, hits.topic):
            found[hits.request_id] = StoredRequest(hits, partition, record.offset)
    for request in await _completed(broker, partition, found):
        yield request


async def _completed(
    broker: str, partition: int, found: dict[str, StoredRequest]
) -> list[StoredRequest]:
    if not found:
        return []
    async for record in read_log(broker, "context.ready", partition=partition):
        context = _read(record, schemas.ContextReady)
        if context is not None and context.request_id in found:
            request = found[context.request_id]
            # A replay may have been published over it: the first is what the line answered.
            request.context = request.context or context
    async for record in read_log(broker, "pages.fetched", partition=partition):
        page = _read(record, schemas.PageFetched)
        if page is not None and page.request_id in found:
            _add_page(found[page.request_id], page)
    return list(found.values())


def _add_page(request: StoredRequest, page: schemas.PageFetched) -> None:
    if page.rank in request.pages:
        return
    if not any(hit.rank == page.rank and hit.url == page.url for hit in request.hits.hits):
        return
    judged = request.context.pages if request.context is not None else None
    # What arrived after the deadline was not judged then, and is not now.
    if judged is None or page.event_id in judged:
        request.pages[page.rank] = page


def _read(record: Any, record_type: type[R]) -> R | None:
    try:
        return schemas.decode(record.value, record_type)
    except schemas.EventError:
        return None  # rejected at the time, too
