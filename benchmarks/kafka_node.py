"""One Apache Kafka node as a process, started by ops/kafka/start.sh."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

__all__ = ["KafkaNode"]

_START_SCRIPT = Path(__file__).parents[1] / "ops/kafka/start.sh"
# Fetched archives are unpacked, a JVM starts, a log is recovered: slow on a busy machine.
_START_SECONDS = 120.0
_STOP_SECONDS = 20.0


def _free_ports() -> int:
    """A port that is free together with the next one, which the controller takes.

    Below the range from which systems give ports to whoever connects: one that is free now is
    free when the node has started, and when it is started again.
    """
    while True:
        port = random.randrange(20_000, 30_000, 2)
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", port))
            two.bind(("127.0.0.1", port + 1))
            return port


class KafkaNode:
    """A broker on 127.0.0.1:`port` with its data in `home`; survives restarts."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = _free_ports()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """`host:port` for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the node and wait until it accepts connections. Raises `RuntimeError`."""
        self.home.mkdir(parents=True, exist_ok=True)
        subprocess.run([_START_SCRIPT, "--fetch"], check=True, stdin=subprocess.DEVNULL)
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_START_SCRIPT, self.home / "data", str(self.port)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        give_up = time.monotonic() + _START_SECONDS
        while True:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1),
            ):
                return
            if self._process.poll() is not None or time.monotonic() > give_up:
                tail = (self.home / "log").read_text(errors="replace")[-3000:]
                self.stop()
                raise RuntimeError(f"Kafka did not start:\n{tail}")
            time.sleep(0.1)

    def stop(self, *, kill: bool = False) -> None:
        """End the node, in order or on the spot."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
