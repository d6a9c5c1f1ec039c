"""The delivery rule: every event ends in outputs, a dead letter, or a worker that stops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from agents.base import Emit, Inbound
from citeflow.findings import Finding, Severity, emit_finding
from streams import shell as shell_module
from streams.audit import audit_record
from streams.publisher import PublishError, RecordTooLargeError
from streams.rejection import MAX_KEPT_BYTES
from streams.shell import AgentShell

TRACE = b"00-" + b"0" * 31 + b"1-" + b"0" * 15 + b"1-01"
ORIGIN = schemas.Origin(
    "topics.requested", 2, 7, datetime(2026, 1, 1, tzinfo=UTC), b"key",
    (("traceparent", TRACE), ("other", b"x")),
)  # fmt: skip


class Sent:
    """Stands where the broker is."""

    def __init__(self, *, failing: bool = False) -> None:
        self.records: list[schemas.Record] = []
        self.headers: list[Sequence[tuple[str, bytes]]] = []
        self._failing = failing

    async def send(self, record: schemas.Record, headers: Sequence[tuple[str, bytes]] = ()) -> None:
        if self._failing:
            raise PublishError("down")
        self.records.append(record)
        self.headers.append(headers)

    def of(self, kind: type[schemas.Record]) -> list[schemas.Record]:
        return [record for record in self.records if isinstance(record, kind)]


class Echo:
    """An agent that fails as often as it is told to."""

    stage = "echo"

    def __init__(self, *errors: BaseException, hang: bool = False) -> None:
        self.errors = list(errors)
        self.calls = 0
        self.hang = hang

    def request_id(self, event: Inbound[schemas.TopicRequested]) -> str:
        return "r"

    async def handle(self, event: Inbound[schemas.TopicRequested], emit: Emit) -> None:
        self.calls += 1
        emit_finding(source="echo", kind="heard", title="t", body="b")
        if self.hang:
            await asyncio.sleep(3600)
        if self.errors:
            raise self.errors.pop(0)
        await emit(schemas.JoinDue(request_id="answer", due_at=event.origin.timestamp))

    async def give_up(
        self, event: Inbound[schemas.TopicRequested], error: Exception, emit: Emit
    ) -> None:
        await emit(schemas.JoinDue(request_id="gave.up", due_at=event.origin.timestamp))


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_module, "RETRY_DELAY", 0.0)


def shell_of(
    agent: Echo, sent: Sent, *, deadline: float = 5.0
) -> AgentShell[schemas.TopicRequested]:
    async def crash(reason: BaseException) -> None:
        raise AssertionError(reason)

    return AgentShell(
        agent,
        record_of=lambda topic: schemas.TopicRequested,
        publisher=sent,  # type: ignore[arg-type]
        crash=crash,
        limit=1,
        deadline=deadline,
    )


async def test_outputs_and_findings_are_sent_with_the_trace() -> None:
    """A good event gives its outputs, then its findings, and passes the trace header on."""
    sent = Sent()
    await shell_of(Echo(), sent).process(ORIGIN, b'{"topic": "x"}')
    assert [type(record) for record in sent.records] == [schemas.JoinDue, schemas.AuditFinding]
    assert sent.headers[0] == [("traceparent", TRACE)]


async def test_a_passing_fault_is_tried_again() -> None:
    """Two faults, then success: one answer, and only the last try's findings."""
    sent, agent = Sent(), Echo(RuntimeError("1"), RuntimeError("2"))
    await shell_of(agent, sent).process(ORIGIN, b'{"topic": "x"}')
    assert agent.calls == 3
    assert [record.key for record in sent.of(schemas.JoinDue)] == [b"answer"]
    assert len(sent.of(schemas.AuditFinding)) == 1


@pytest.mark.parametrize("agent", [Echo(*[RuntimeError("x")] * 3), Echo(hang=True)])
async def test_a_lasting_fault_is_answered_and_reported(agent: Echo) -> None:
    """After the last try the agent's stand-in answer goes out, with an error finding."""
    sent = Sent()
    await shell_of(agent, sent, deadline=0.05).process(ORIGIN, b'{"topic": "x"}')
    assert [record.key for record in sent.of(schemas.JoinDue)] == [b"gave.up"]
    (finding,) = sent.of(schemas.AuditFinding)
    assert isinstance(finding, schemas.AuditFinding)
    assert (finding.kind, finding.severity) == ("agent_failed", "error")
    assert sent.of(schemas.EventRejected) == []


@pytest.mark.parametrize(
    "value",
    [
        None, b"", b"not json", b"[]", b"{}", b'{"topic": 5}', b'{"topic": ""}', b"\xff\xfe",
        b'{"topic": "' + b"x" * 10_000 + b'"}', b'{"topic": "' + b"x" * 2_000_000,
        b'{"topic": "x", "schema": "other/1"}', b'{"topic": "x", "a": ' + b"[" * 10_000,
    ],
)  # fmt: skip
async def test_an_unreadable_event_becomes_one_dead_letter(value: bytes | None) -> None:
    """What cannot be read is kept, cut to a size that fits, with a finding, and not handled."""
    sent, agent = Sent(), Echo()
    await shell_of(agent, sent).process(ORIGIN, value)
    assert agent.calls == 0
    (rejected,) = sent.of(schemas.EventRejected)
    assert isinstance(rejected, schemas.EventRejected)
    assert (rejected.topic, rejected.partition, rejected.offset) == ("topics.requested", 2, 7)
    assert rejected.value == (value or b"")[:MAX_KEPT_BYTES]
    assert rejected.value_size == len(value or b"")
    assert len(schemas.encode(rejected)) < 500_000
    assert [record.kind for record in sent.of(schemas.AuditFinding)] == ["event_rejected"]  # type: ignore[attr-defined]


async def test_an_event_the_agent_cannot_use_is_not_tried_again() -> None:
    """EventError from the agent is a dead letter at once."""
    sent, agent = Sent(), Echo(schemas.EventError("options: no"))
    await shell_of(agent, sent).process(ORIGIN, b'{"topic": "x"}')
    assert agent.calls == 1
    assert len(sent.of(schemas.EventRejected)) == 1


async def test_rejecting_again_has_the_same_identity() -> None:
    """A redelivered bad event is recognisable by its event id."""
    sent = Sent()
    for _ in range(2):
        await shell_of(Echo(), sent).process(ORIGIN, b"no")
    first, second = sent.of(schemas.EventRejected)
    assert schemas.encode(first) == schemas.encode(second)


async def test_a_broker_that_takes_nothing_surfaces() -> None:
    """When neither output nor dead letter can be sent, the event stays unacknowledged."""
    for value in (b'{"topic": "x"}', b"no"):
        with pytest.raises(PublishError):
            await shell_of(Echo(), Sent(failing=True)).process(ORIGIN, value)


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_no_bytes_escape(value: bytes) -> None:
    """Whatever the bytes, processing ends in an answer or in exactly one dead letter."""
    sent = Sent()
    asyncio.run(shell_of(Echo(), sent).process(ORIGIN, value))
    assert len(sent.of(schemas.EventRejected)) + len(sent.of(schemas.JoinDue)) == 1


@pytest.mark.parametrize(
    ("trace", "passed_on"),
    [
        (b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01", True),
        (b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01\n", False),
        (b"x" * 900_000, False),
        (b"", False),
    ],
)
async def test_only_a_trace_is_passed_on(trace: bytes, passed_on: bool) -> None:
    """A header that is no trace would be multiplied by every stage."""
    sent = Sent()
    origin = schemas.Origin("topics.requested", 0, 0, headers=(("traceparent", trace),))
    await shell_of(Echo(), sent).process(origin, b'{"topic": "x"}')
    assert [headers != [] for headers in sent.headers] == [passed_on] * 2


@pytest.mark.parametrize("seconds", [None, -5.0, 0.0, 1e9, 253402300800.0, 1e12, 1e300])
def test_any_record_timestamp_is_a_time(seconds: float | None) -> None:
    """Producers set timestamps; each becomes a time to which a timeout can be added."""
    assert shell_module._time(seconds) + timedelta(days=30) < datetime.max.replace(tzinfo=UTC)


async def test_a_dead_letter_that_is_too_large_is_cut_further() -> None:
    """What the broker has no room for is rejected without its bytes, not for ever tried again."""

    class Small(Sent):
        async def send(
            self, record: schemas.Record, headers: Sequence[tuple[str, bytes]] = ()
        ) -> None:
            if len(schemas.encode(record)) > 2_000:
                raise RecordTooLargeError("large")
            await super().send(record, headers)

    sent = Small()
    await shell_of(Echo(), sent).process(ORIGIN, b"{" + b"x" * 5_000)
    (rejected,) = sent.of(schemas.EventRejected)
    assert isinstance(rejected, schemas.EventRejected)
    assert (rejected.value, rejected.value_size) == (b"", 5_001)


def test_findings_are_of_bounded_size() -> None:
    """Whatever a page makes of its host name, the finding about it fits a record."""
    finding = Finding("s" * 10, "k", Severity.INFO, "t" * 9_999, "b" * 99_999, "d" * 9_999,
                      {"host": "h" * 900_000})  # fmt: skip
    record = audit_record(finding, stage="fetch", request_id="r", timestamp=ORIGIN.timestamp)
    assert len(schemas.encode(record)) < 100_000
