"""How a process of the stream is set up: broker, partitions, timing. Read once at start.

Settings that change behaviour while running are in `citeflow.settings`; these are the few that
a process needs before it can read anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from citeflow.errors import SettingsError

__all__ = ["StreamConfig", "check_broker"]


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """One process's configuration; times are in seconds.

    `broker` is `host:port[,host:port]`. All topics have `partitions` partitions and
    `replication` replicas. `app_prefix` starts the names of the three consumer groups.
    """

    broker: str = "localhost:9092"
    database_url: str = ""
    partitions: int = 8
    replication: int = 1
    app_prefix: str = "citeflow"
    # How long a worker may be silent before its partitions go to another.
    session_timeout: float = 30.0
    heartbeat_interval: float = 3.0
    # Must exceed the longest handler, or a rebalance throws out members that are merely busy.
    rebalance_timeout: float = 420.0
    # Faust forgets what is done but not committed at a rebalance, so commits are frequent.
    commit_interval: float = 0.5
    producer_linger: float = 0.0
    # How long one publish is tried; then the worker ends and the event comes back.
    publish_timeout: float = 30.0
    # How long a stopping worker may drain before it is cut off; a cut loses nothing.
    stop_timeout: float = 25.0
    # How long commits, a handler or a recovery may stand still: longer than any handler's tries.
    stall_timeout: float = 600.0
    # How long no broker may answer; a new worker then waits for it anew.
    broker_timeout: float = 60.0
    # Seconds between two looks at which requests are due.
    due_interval: float = 1.0
    max_batch_size: int = 16_384
    # How long the broker may hold a fetch that has nothing to give; None leaves Faust's 1.5 s.
    fetch_wait: float | None = None

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> StreamConfig:
        """Read `CITEFLOW_BROKER`, `_DATABASE_URL`, `_PARTITIONS`, `_REPLICATION`, `_APP_PREFIX`
        and `_SESSION_TIMEOUT` (seconds, for a tenth of which a heartbeat is sent).

        Raises `SettingsError` when one cannot be used.
        """
        env = os.environ if environ is None else environ
        default = cls()
        session = _positive(env, "CITEFLOW_SESSION_TIMEOUT", int(default.session_timeout))
        return cls(
            broker=check_broker(env.get("CITEFLOW_BROKER", "").strip() or default.broker),
            database_url=env.get("CITEFLOW_DATABASE_URL", "").strip(),
            partitions=_positive(env, "CITEFLOW_PARTITIONS", default.partitions),
            replication=_positive(env, "CITEFLOW_REPLICATION", default.replication),
            app_prefix=env.get("CITEFLOW_APP_PREFIX", "").strip() or default.app_prefix,
            session_timeout=float(session),
            heartbeat_interval=session / 10,
        )


def check_broker(broker: str) -> str:
    """The address list as given. Raises `SettingsError` when it is not `host:port[,...]`."""
    for address in broker.split(","):
        host, colon, port = address.strip().rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
            raise SettingsError(f"broker: expected host:port[,host:port], got {broker!r}")
    return broker


def _positive(env: Mapping[str, str], name: str, default: int) -> int:
    raw = env.get(name, "").strip()
    if not raw:
        return default
    try:
        number = int(raw)
    except ValueError as exc:
        raise SettingsError(f"{name}: expected a whole number, got {raw!r}") from exc
    if not 1 <= number <= 10_000:
        raise SettingsError(f"{name}: expected 1 to 10000, got {number}")
    return number
