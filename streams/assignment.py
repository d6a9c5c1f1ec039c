"""Assigning partitions that the leader of a group has not heard of.

A broker that was just started may answer that there are no such topics: it accepts clients before
it has read its own metadata. A leader that takes this for true assigns nothing to anybody, and the
group stands still until the client asks again by itself, five minutes later (aiokafka 0.14). Seen
with Apache Kafka 4.1: after a restart of the broker, four groups of three members had no partition
for 295 seconds.

A worker has checked when it started that its topics have the partitions they must have, so these
are there whatever the broker says for the moment. Whoever is assigned one that cannot be read yet
asks for metadata until it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["AssignsAll"]


class AssignsAll:
    """An assignor that lets `assignor` see at least `partitions` partitions of every topic."""

    def __init__(self, assignor: Any, partitions: int) -> None:
        self._assignor = assignor
        self._partitions = partitions

    @property
    def name(self) -> str:
        """The name of the protocol, as members of a group agree upon it."""
        return str(self._assignor.name)

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> Any:
        """Whose each partition is."""
        return self._assignor.assign(_Cluster(cluster, self._partitions), members)

    def metadata(self, topics: Iterable[str]) -> Any:
        """What a member says of itself when it joins."""
        return self._assignor.metadata(topics)

    def on_assignment(self, assignment: Any) -> None:
        """Note what this member was given."""
        self._assignor.on_assignment(assignment)


class _Cluster:
    """What an assignor asks of the client's view of the cluster."""

    def __init__(self, cluster: Any, partitions: int) -> None:
        self._cluster = cluster
        self._least = set(range(partitions))

    def partitions_for_topic(self, topic: str) -> set[int]:
        known: Iterable[int] = self._cluster.partitions_for_topic(topic) or ()
        return self._least.union(known)
