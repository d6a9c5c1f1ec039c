"""Records fetched while nothing may flow are given back, not dropped."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from aiokafka.errors import IllegalStateError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from streams.kafka_transport import CarefulConsumerThread, stop_flow_until_sought


class Client:
    """Records the seeks it is asked for; partition `gone` is not assigned."""

    def __init__(self) -> None:
        self.sought: list[tuple[str, int]] = []

    def seek(self, partition: str, offset: int) -> None:
        if partition == "gone":
            raise IllegalStateError("not assigned")
        self.sought.append((partition, offset))


def batch(*offsets: int) -> list[Any]:
    return [SimpleNamespace(offset=offset) for offset in offsets]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """What the client was asked for; it always has the same records."""
    asked: list[set[str]] = []

    async def fetch(self: Any, consumer: Any, partitions: set[str], **_: Any) -> Any:
        asked.append(partitions)
        return {"a": batch(4, 5), "gone": batch(9), "b": batch(7)}

    monkeypatch.setattr(AIOKafkaConsumerThread, "_fetch_records", fetch)
    return asked


def thread(*, flowing: bool) -> CarefulConsumerThread:
    made = CarefulConsumerThread.__new__(CarefulConsumerThread)
    made.consumer = SimpleNamespace(flow_active=flowing)  # type: ignore[assignment]
    return made


async def test_records_pass_while_they_flow(asked: list[set[str]]) -> None:
    """Ordinarily records are handed on and no position is touched."""
    client = Client()
    records = await thread(flowing=True)._fetch_records(client, {"a", "b"})
    assert sorted(records) == ["a", "b", "gone"]
    assert client.sought == []


async def test_records_are_given_back_while_they_do_not(asked: list[set[str]]) -> None:
    """Each partition still assigned is sought to the first record that was fetched."""
    client = Client()
    assert await thread(flowing=False)._fetch_records(client, {"a", "b"}) == {}
    assert client.sought == [("a", 4), ("b", 7)]


async def test_no_partition_is_not_all_partitions(asked: list[set[str]]) -> None:
    """An empty set fetches nothing, and the set asked for is a copy."""
    assert await thread(flowing=True)._fetch_records(Client(), set()) == {}
    assert asked == []
    mine = {"a"}
    await thread(flowing=True)._fetch_records(Client(), mine)
    mine.add("b")
    assert asked == [{"a"}]


async def test_flow_stops_when_a_rebalance_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal that precedes the resuming of partitions stops the flow."""
    app = faust.App("flow", broker="kafka://127.0.0.1:9", autodiscover=False)
    stopped: list[bool] = []
    monkeypatch.setattr(app.consumer, "stop_flow", lambda: stopped.append(True))
    stop_flow_until_sought(app)
    await app.on_rebalance_complete.send()
    assert stopped == [True]


async def test_only_its_own_thread_closes_the_client() -> None:
    """A rebalance while the app stops leaves the client to the thread that owns it."""
    closed: list[str] = []

    async def close(part: str) -> None:
        closed.append(part)

    client = SimpleNamespace(
        _closed=False,
        _client=SimpleNamespace(close=lambda: close("client")),
        _coordinator=SimpleNamespace(close=lambda: close("coordinator")),
    )
    made = thread(flowing=False)
    made.app = SimpleNamespace(loop=asyncio.get_running_loop())  # type: ignore[assignment]
    made._consumer = client  # type: ignore[assignment]
    made.close()
    await asyncio.sleep(0.01)
    assert closed == []
    # Otherwise the thread would take it for closed, and leave no group.
    assert not client._closed
