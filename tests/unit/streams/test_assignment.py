"""Every partition is assigned, even those that the leader has not heard of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.structs import TopicPartition

from streams.assignment import AssignsAll


def assigned(known: dict[str, set[int] | None], members: int) -> set[TopicPartition]:
    """What the members of a group get together, each partition once."""
    assignor = AssignsAll(RoundRobinPartitionAssignor, 4)
    joined = {f"member-{n}": assignor.metadata(known) for n in range(members)}
    cluster = SimpleNamespace(partitions_for_topic=known.get)
    answers: dict[str, Any] = assignor.assign(cluster, joined)
    given = [
        TopicPartition(topic, partition)
        for answer in answers.values()
        for topic, partitions in answer.assignment
        for partition in partitions
    ]
    assert len(given) == len(set(given))
    return set(given)


@pytest.mark.parametrize("members", [1, 3, 9])
@pytest.mark.parametrize("known", [None, set(), {0}, {1, 2}, {0, 1, 2, 3}])
def test_what_must_be_there_is_assigned(known: set[int] | None, members: int) -> None:
    """A broker that knows nothing, or not all, of a topic does not leave partitions idle."""
    assert assigned({"a": known, "b": {0, 1, 2, 3}}, members) == {
        TopicPartition(topic, partition) for topic in "ab" for partition in range(4)
    }


def test_more_than_must_be_there_is_assigned_too() -> None:
    """Partitions that were added are not ignored."""
    assert TopicPartition("a", 6) in assigned({"a": {0, 6}}, 2)


def test_members_agree_on_the_assignor_beneath() -> None:
    """Workers of before and after join one group."""
    assert AssignsAll(RoundRobinPartitionAssignor, 4).name == "roundrobin"
