"""The delivery rule, in one place for every agent.

    take without acknowledgement -> decode -> handle -> send -> await the broker -> acknowledge

in order per partition. Nothing an event holds or causes escapes: it ends in its outputs, or in
`events.rejected`, or, when the broker takes neither, the worker ends unacknowledged and the event
comes back.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

import schemas
from agents.base import Agent, Emit, Inbound
from citeflow.findings import Finding, Severity, collect_findings
from streams.audit import audit_record
from streams.metrics import EVENTS, note_finding
from streams.publisher import Publisher, PublishError, RecordTooLargeError
from streams.rejection import rejection, rejection_finding
from streams.window import AckWindow

if TYPE_CHECKING:
    from faust.types import EventT, StreamT

__all__ = ["AgentShell", "origin_of"]

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=schemas.Record)

LATEST = datetime(9998, 12, 31, tzinfo=UTC)
ATTEMPTS = 3
RETRY_DELAY = 0.2
# Events taken for each that is handled. More where one lane must not hold up the others.
HELD, HELD_IN_LANES = 4, 8
TRACE_HEADER = "traceparent"
# As the W3C defines it: 55 bytes in version 00, a little more in versions to come.
TRACE_PATTERN = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}[0-9a-f-]{0,64}")


def origin_of(event: EventT[Any]) -> schemas.Origin:
    """Where a Faust event was read from."""
    message = event.message
    headers: Any = message.headers or ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return schemas.Origin(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp=_time(message.timestamp),
        key=message.key,
        headers=tuple((str(name), bytes(value or b"")) for name, value in pairs),
    )


def _time(seconds: float | None) -> datetime:
    # Producers set timestamps; one that no calendar has must not stop the worker. The last year
    # is kept free, so that adding a timeout to a timestamp has room.
    try:
        return min(datetime.fromtimestamp(max(seconds or 0.0, 0.0), UTC), LATEST)
    except (ValueError, OverflowError, OSError):
        return LATEST


class AgentShell(Generic[R]):
    """Runs one agent over one Faust stream.

    `record_of` maps a topic name to the record type it holds. `limit` is how many events are
    handled at once; `deadline` bounds one try of one event, in seconds. `crash` ends the worker.
    With `in_lanes` records of partitions with the same number, of whatever topic, are handled one
    after the other.
    """

    def __init__(
        self,
        agent: Agent[R],
        *,
        record_of: Callable[[str], type[R]],
        publisher: Publisher,
        crash: Callable[[BaseException], Awaitable[None]],
        limit: int,
        deadline: float,
        in_lanes: bool = False,
    ) -> None:
        self._agent = agent
        self._record_of = record_of
        self._publisher = publisher
        self._crash = crash
        self._limit = limit
        self._deadline = deadline
        self._in_lanes = in_lanes

    async def run(self, stream: StreamT[Any]) -> None:
        """Handle the stream's events until it ends."""
        manual: Any = stream.noack()  # type: ignore[attr-defined] # missing in faust's interface
        window: AckWindow[Any, EventT[Any]] = AckWindow(
            manual.ack, limit=self._limit, held=HELD_IN_LANES if self._in_lanes else HELD
        )
        try:
            async for event in manual.events():
                message = event.message
                # A partition that left and came back is another window: what was in flight
                # before belongs to the worker that had it in between.
                await window.submit(
                    (message.tp, message.generation_id),
                    event,
                    self._process,
                    lane=message.partition if self._in_lanes else None,
                )
        finally:
            window.cancel()

    async def _process(self, event: EventT[Any]) -> None:
        """Total: returns when the event is dealt with, or ends the worker."""
        try:
            await self.process(origin_of(event), event.message.value)
        except PublishError as exc:
            logger.critical("%s agent: the broker takes no records: %s", self._agent.stage, exc)
            await self._crash(exc)
            raise
        except Exception as exc:
            logger.critical("%s agent: fault in delivery", self._agent.stage, exc_info=exc)
            await self._crash(exc)
            raise

    async def process(self, origin: schemas.Origin, value: bytes | None) -> None:
        """Deal with one event. Raises `PublishError` only."""
        trace = origin.header(TRACE_HEADER)
        headers = [(TRACE_HEADER, trace)] if trace and TRACE_PATTERN.fullmatch(trace) else []

        async def emit(record: schemas.Record) -> None:
            await self._publisher.send(record, headers)

        try:
            record = schemas.decode(value, self._record_of(origin.topic))
        except schemas.EventError as exc:
            await self._reject(origin, value, str(exc), emit)
            return
        await self._handle(Inbound(record, origin), value, emit)

    async def _handle(self, event: Inbound[R], value: bytes | None, emit: Emit) -> None:
        stage = self._agent.stage
        for attempt in range(1, ATTEMPTS + 1):
            with collect_findings() as findings:
                try:
                    async with asyncio.timeout(self._deadline):
                        await self._agent.handle(event, emit)
                except schemas.EventError as exc:
                    await self._reject(event.origin, value, str(exc), emit)
                    return
                except PublishError:
                    raise
                except Exception as exc:
                    EVENTS.labels(stage, "failed").inc()
                    logger.warning(
                        "%s agent: try %d of %d failed on %s",
                        stage, attempt, ATTEMPTS, event.origin.position, exc_info=exc,
                    )  # fmt: skip
                    # A try that took all its time would take it again.
                    if attempt == ATTEMPTS or isinstance(exc, TimeoutError):
                        await self._give_up(event, value, exc, emit)
                        return
                else:
                    await self._send_findings(event, findings, emit)
                    EVENTS.labels(stage, "handled").inc()
                    return
            await asyncio.sleep(RETRY_DELAY * 2**attempt)

    async def _give_up(
        self, event: Inbound[R], value: bytes | None, error: Exception, emit: Emit
    ) -> None:
        stage = self._agent.stage
        reason = f"{type(error).__name__}: {error}"
        failed = Finding(
            source=f"{stage}_agent",
            kind="agent_failed",
            severity=Severity.ERROR,
            title=f"The {stage} agent could not handle an event",
            body=f"{event.origin.position}: {reason}",
            dedup_key=f"agent_failed:{stage}:{type(error).__name__}",
        )
        try:
            await self._agent.give_up(event, error, emit)
        except PublishError:
            raise
        except Exception as exc:
            logger.error("%s agent: gave up badly on %s", stage, event.origin, exc_info=exc)
            await self._reject(event.origin, value, reason, emit)
            return
        await self._send_findings(event, [failed], emit)
        EVENTS.labels(stage, "given_up").inc()

    async def _reject(
        self, origin: schemas.Origin, value: bytes | None, error: str, emit: Emit
    ) -> None:
        rejected = rejection(origin, value, stage=self._agent.stage, error=error)
        logger.warning("%s rejected: %s", origin.position, rejected.error)
        finding = rejection_finding(rejected)
        await asyncio.gather(_emit_rejected(rejected, emit), emit(finding))
        EVENTS.labels(self._agent.stage, "rejected").inc()
        note_finding(finding.kind, "emitted")

    async def _send_findings(self, event: Inbound[R], findings: list[Finding], emit: Emit) -> None:
        for finding in findings:
            record = audit_record(
                finding,
                stage=self._agent.stage,
                request_id=self._agent.request_id(event),
                timestamp=event.origin.timestamp,
            )
            await emit(record)
            note_finding(record.kind, "emitted")


async def _emit_rejected(rejected: schemas.EventRejected, emit: Emit) -> None:
    try:
        await emit(rejected)
    except RecordTooLargeError:
        # Its place in the log and its digest still tell what it was.
        await emit(msgspec.structs.replace(rejected, value=b"", headers=(), record_key=None))
