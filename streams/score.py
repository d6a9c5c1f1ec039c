"""The scoring stage: the join's state machine with its table and its output."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

import schemas
from agents.backlog import Backlog
from agents.base import Emit, Inbound
from agents.score import build_context, failed_context
from citeflow.findings import collect_findings
from citeflow.settings import SiteConfig
from streams.audit import audit_record
from streams.join import CloseReason, Emitted, JoinState, Phase, resume, step
from streams.metrics import note_finding
from streams.publisher import PublishError, RecordTooLargeError
from streams.state_table import StateTable

__all__ = ["JOIN_RECORDS", "ScoreStage"]

JoinRecord = schemas.SearchHits | schemas.PageFetched | schemas.JoinDue

JOIN_RECORDS: dict[str, type[JoinRecord]] = {
    "search.hits": schemas.SearchHits,
    "pages.fetched": schemas.PageFetched,
    "join.due": schemas.JoinDue,
}


class ScoreStage:
    """Feeds events to the join, one of a partition at a time, and emits the context it asks for.

    Order matters: the closing state is stored before the context is sent, so that after a crash
    the same pages are judged again; the finished state is stored after the broker has it.
    `backlog` is told how old pages are when their turn comes.
    """

    stage = "score"

    def __init__(
        self,
        *,
        table: StateTable[JoinState],
        site_config: SiteConfig,
        clock: Callable[[], datetime],
        backlog: Backlog,
    ) -> None:
        self._table = table
        self._site_config = site_config
        self._clock = clock
        self._backlog = backlog

    def request_id(self, event: Inbound[JoinRecord]) -> str:
        """The request the event belongs to."""
        return event.record.request_id

    async def handle(self, event: Inbound[JoinRecord], emit: Emit) -> None:
        """Step the join, store what it knows, and emit the context when it closes."""
        if isinstance(event.record, schemas.PageFetched):
            with self._backlog.handling(event.record.fetched_at):
                await self._join(event, emit)
        else:
            await self._join(event, emit)

    async def _join(self, event: Inbound[JoinRecord], emit: Emit) -> None:
        state, closing = await self._step(event)
        if closing is None or state is None or state.hits is None:
            return
        with collect_findings() as findings:
            context = build_context(
                state.hits,
                state.pages_by_rank,
                deadline_passed=state.close_reason is CloseReason.DEADLINE,
            )
        for finding in findings:
            note_finding(finding.kind, "emitted")
            await emit(
                audit_record(
                    finding,
                    stage=self.stage,
                    request_id=context.request_id,
                    timestamp=state.hits.searched_at,
                )
            )
        await self._finish(event, state, context, emit)

    async def give_up(self, event: Inbound[JoinRecord], error: Exception, emit: Emit) -> None:
        """Answer a request whose context cannot be built; other events are lost to the join.

        What another try, or another worker, may do better is not an answer, or two of them could
        contradict each other: then the worker ends. Raises `PublishError` for that.
        """
        if isinstance(error, TimeoutError | MemoryError | OSError):
            raise PublishError(f"{type(error).__name__} between closing and sending") from error
        state = self._table.get(event.record.key)
        if state is None or state.phase is not Phase.CLOSING or state.hits is None:
            raise error
        await self._finish(event, state, failed_context(state.hits, error), emit)

    async def _step(self, event: Inbound[JoinRecord]) -> tuple[JoinState | None, object | None]:
        key = event.record.key
        if not self._table.belongs(key, event.origin.partition):
            raise schemas.EventError(
                f"a record of request {event.record.request_id} does not belong in this partition"
            )
        before = self._table.get(key)
        state, effect = step(
            before,
            event.record,
            arrived_at=event.origin.timestamp,
            remember=self._remember(),
        )
        while state is not before:
            try:
                before = await self._table.put(key, state)
            except RecordTooLargeError:
                page = _without_text(event.record)
                if page is None:
                    raise
                return await self._step(Inbound(page, event.origin))
            if before is not state:
                # Another worker wrote meanwhile: go on from what the log says.
                state, effect = resume(before)
        return state, effect

    async def _finish(
        self,
        event: Inbound[JoinRecord],
        state: JoinState,
        context: schemas.ContextReady,
        emit: Emit,
    ) -> None:
        await emit(context)
        done, _ = step(
            state,
            Emitted(self._clock()),
            arrived_at=event.origin.timestamp,
            remember=self._remember(),
        )
        await self._table.put(context.key, done)

    def _remember(self) -> timedelta:
        seconds = self._site_config.get_float("stream_join_tombstone_seconds")
        return timedelta(seconds=seconds)


def _without_text(record: JoinRecord) -> JoinRecord | None:
    """A page that the request's state has no room for, as one that was too large to be read."""
    if not isinstance(record, schemas.PageFetched) or not record.text:
        return None
    return msgspec.structs.replace(
        record, text="", status="too_large", detail="no room for its text", content_sha256=""
    )
