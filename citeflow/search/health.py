"""How each search engine is doing, shared by all searches of the process: circuit and rate limit.

One state per endpoint, because engines count requests per address that asks and not per caller.
Nothing here waits or does I/O: callers are told how long to wait, from any thread and loop.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from citeflow.search.outcome import SearchStatus

__all__ = ["HEALTH", "EngineHealth", "EngineLimits", "EngineState", "Health", "Refusal"]

# Longest that one `Retry-After` keeps an engine from being asked: a hostile or mistaken one must
# not switch an engine off for a day.
_OPEN_CEILING_SECONDS = 3_600.0

# A trial after an open circuit that never reports back (its process is stopped, say) gives the
# next one its turn after this; no attempt may take longer (300 s at most, by its setting).
_TRIAL_SECONDS = 300.0

# Ten seconds' worth of requests may go at once; more in a burst is what engines take for a robot.
_BURST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """`failures` in a row open the circuit for `open_seconds`; `per_minute` 0 is no rate limit."""

    per_minute: float = 0.0
    failures: int = 5
    open_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an engine is not asked now. `retry_after` in seconds.

    `on_trial` is True while another search tries it after an open circuit: worth a short wait.
    """

    status: SearchStatus
    detail: str
    retry_after: float
    circuit_open: bool = False
    on_trial: bool = False


@dataclass(frozen=True, slots=True)
class EngineState:
    """What metrics show of an engine. `requests` counts by status, times are in seconds."""

    endpoint: str
    requests: dict[str, int]
    not_asked: int
    failures_in_a_row: int
    circuit_open: bool
    opens_for: float


class EngineHealth:
    """One engine's circuit, rate limit and counters."""

    def __init__(self, endpoint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.endpoint = endpoint
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._blocked: SearchStatus | None = None
        self._open_until = 0.0
        self._trial_until = 0.0
        self._next_turn = 0.0
        self._requests: Counter[str] = Counter()
        self._not_asked = 0

    def admit(self, limits: EngineLimits, *, patience: float) -> float | Refusal:
        """Seconds to wait before asking, at most `patience`, with the turn taken; or a refusal."""
        now = self._clock()
        with self._lock:
            refusal = self._circuit(now)
            if refusal is None:
                wait = self._turn(limits, now)
                if wait <= patience:
                    if limits.per_minute > 0:
                        self._next_turn = max(self._next_turn, now) + 60.0 / limits.per_minute
                    if self._blocked is not None:
                        self._trial_until = now + wait + _TRIAL_SECONDS
                    return wait
                detail = f"not asked: our own {limits.per_minute:g} requests a minute are used up"
                refusal = Refusal(SearchStatus.RATE_LIMITED, detail, wait)
            if not refusal.on_trial:
                self._not_asked += 1
            return refusal

    def report(
        self, status: SearchStatus, limits: EngineLimits, *, retry_after: float | None = None
    ) -> None:
        """What came of a request. Failures of the engine open the circuit, an answer closes it."""
        now = self._clock()
        with self._lock:
            self._requests[status.value] += 1
            self._trial_until = 0.0
            if status.answered:
                self._failures = 0
                self._blocked = None
                self._open_until = 0.0
                return
            if not (status.refused or status in (SearchStatus.TIMEOUT, SearchStatus.UNREACHABLE)):
                return
            self._failures += 1
            if retry_after:
                self._open(status, now + min(retry_after, _OPEN_CEILING_SECONDS))
            elif self._failures >= limits.failures or self._blocked is not None:
                self._open(status, now + limits.open_seconds)

    def abandon(self) -> None:
        """A request was given up from our side: it says nothing about the engine."""
        with self._lock:
            self._trial_until = 0.0

    def state(self) -> EngineState:
        """The state now."""
        now = self._clock()
        with self._lock:
            return EngineState(
                endpoint=self.endpoint,
                requests=dict(self._requests),
                not_asked=self._not_asked,
                failures_in_a_row=self._failures,
                circuit_open=self._blocked is not None,
                opens_for=max(0.0, self._open_until - now),
            )

    def _open(self, status: SearchStatus, until: float) -> None:
        self._blocked = status
        self._open_until = max(self._open_until, until)

    def _circuit(self, now: float) -> Refusal | None:
        if self._blocked is None:
            return None
        left = self._open_until - now
        if left > 0:
            detail = f"not asked: left alone for another {left:.0f} s after {self._blocked.value}"
            return Refusal(self._blocked, detail, left, circuit_open=True)
        if now < self._trial_until:
            detail = f"not asked: another search is trying it after {self._blocked.value}"
            return Refusal(self._blocked, detail, 1.0, circuit_open=True, on_trial=True)
        return None

    def _turn(self, limits: EngineLimits, now: float) -> float:
        """The generic cell rate algorithm: a bucket kept as the time of the next regular turn."""
        if limits.per_minute <= 0:
            return 0.0
        interval = 60.0 / limits.per_minute
        return max(0.0, self._next_turn - now - max(0.0, _BURST_SECONDS - interval))


class Health:
    """The engines of a process by endpoint."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._engines: dict[str, EngineHealth] = {}

    def of(self, endpoint: str) -> EngineHealth:
        """The state of the engine at `endpoint`."""
        with self._lock:
            engine = self._engines.get(endpoint)
            if engine is None:
                engine = self._engines[endpoint] = EngineHealth(endpoint, self._clock)
            return engine

    def states(self) -> list[EngineState]:
        """All engines that were asked, for metrics."""
        with self._lock:
            engines = list(self._engines.values())
        return [engine.state() for engine in engines]


HEALTH = Health()
"""The state that all searches of this process share."""
