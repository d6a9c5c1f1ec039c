"""Asking one backend one query: its turn, its circuit, its retries, all within a time."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from citeflow.search.backend import BackendAnswer, SearchBackend
from citeflow.search.health import EngineHealth, EngineLimits, Refusal
from citeflow.search.outcome import SearchAttempt, SearchHit, SearchStatus
from citeflow.search.retry import RetryPolicy, Sleep, Uniform, worth_repeating

if TYPE_CHECKING:
    from citeflow.settings import SiteConfig

__all__ = ["Asked", "Asker", "Time"]

logger = logging.getLogger(__name__)

# Less than this is no time to ask anybody anything.
_MIN_SECONDS = 0.02

# How long a search waits for its turn at a backend while there is another one to ask.
_PATIENCE_SECONDS = 5.0

# How often a search looks whether the trial that another one makes has come to an end.
_TRIAL_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Asked:
    """One attempt, and its hits."""

    attempt: SearchAttempt
    hits: tuple[SearchHit, ...] = ()


@dataclass(frozen=True, slots=True)
class Time:
    """What stands in for time and chance."""

    sleep: Sleep = asyncio.sleep
    uniform: Uniform = random.uniform


class Asker:
    """Asks with the limits that the settings give at each call."""

    def __init__(self, site_config: SiteConfig, clockwork: Time) -> None:
        self._config = site_config
        self._time = clockwork

    async def ask(
        self,
        backend: SearchBackend,
        engine: EngineHealth,
        query: str,
        k: int,
        *,
        until: float,
        last: bool,
    ) -> Asked:
        """Hits or the reason why there are none, by the monotonic time `until`.

        `last` says that no other backend is left, so that waiting for a turn costs nothing.
        """
        config = self._config
        limits = self._limits(backend)
        attempts = config.get_int("web_research_ddg_retry_attempts") if backend.retried else 1
        policy = RetryPolicy(
            attempts, config.get_float("web_research_ddg_retry_base_delay_ms") / 1000
        )
        ceiling = config.get_float("web_research_retry_after_ceiling_seconds")
        answer = BackendAnswer(SearchStatus.TIMEOUT, detail="the search's time was up")
        refusal: Refusal | None = None
        requests = 0
        while (left := until - time.monotonic()) > _MIN_SECONDS:
            admitted = engine.admit(limits, patience=left if last else min(left, _PATIENCE_SECONDS))
            if isinstance(admitted, Refusal):
                refusal = admitted
                if admitted.on_trial:
                    await self._time.sleep(_TRIAL_POLL_SECONDS)
                    continue
                break
            refusal = None
            answer = await self._once(backend, engine, query, k, limits, admitted, until)
            requests += 1
            if requests >= policy.attempts or not worth_repeating(
                answer, retry_after_ceiling=ceiling
            ):
                break
            pause = answer.retry_after
            if pause is None:
                pause = policy.delay(requests - 1, self._time.uniform)
            if pause >= until - time.monotonic():
                break
            await self._time.sleep(pause)
        return _asked(backend, query, answer, refusal, requests)

    def _limits(self, backend: SearchBackend) -> EngineLimits:
        config = self._config
        shares = config.get_int("web_research_workers_per_address")
        return EngineLimits(
            per_minute=config.get_float(backend.per_minute_setting) / shares,
            failures=config.get_int("web_research_circuit_failures"),
            open_seconds=config.get_float("web_research_circuit_open_seconds"),
        )

    async def _once(
        self,
        backend: SearchBackend,
        engine: EngineHealth,
        query: str,
        k: int,
        limits: EngineLimits,
        wait: float,
        until: float,
    ) -> BackendAnswer:
        reported = False
        try:
            if wait > 0:
                await self._time.sleep(wait)
            allowed = self._config.get_float("web_research_search_timeout_seconds")
            seconds = min(allowed, until - time.monotonic())
            if seconds <= _MIN_SECONDS:
                return BackendAnswer(SearchStatus.TIMEOUT, detail="the search's time was up")
            answer = await _within(backend, query, k, seconds)
            # A caller in a hurry says nothing about an engine that was given no time to answer.
            if answer.status is not SearchStatus.TIMEOUT or seconds >= allowed / 2:
                engine.report(answer.status, limits, retry_after=answer.retry_after)
                reported = True
            return answer
        finally:
            if not reported:
                engine.abandon()


async def _within(backend: SearchBackend, query: str, k: int, seconds: float) -> BackendAnswer:
    try:
        async with asyncio.timeout(seconds):
            return await backend.search(query, k, seconds)
    except TimeoutError:
        return BackendAnswer(SearchStatus.TIMEOUT, detail=f"no answer within {seconds:.3g} s")
    except Exception:
        # The stage boundary: one backend's fault must not end the search.
        logger.exception("search backend %s failed", backend.name)
        return BackendAnswer(SearchStatus.UNAVAILABLE, detail="an unforeseen failure")


def _asked(
    backend: SearchBackend,
    query: str,
    answer: BackendAnswer,
    refusal: Refusal | None,
    requests: int,
) -> Asked:
    if requests == 0 and refusal is not None:
        attempt = SearchAttempt(
            backend.name,
            query,
            refusal.status,
            refusal.detail,
            refusal.retry_after,
            requests=0,
            circuit_open=refusal.circuit_open,
        )
        return Asked(attempt)
    attempt = SearchAttempt(
        backend.name,
        query,
        answer.status,
        answer.detail,
        answer.retry_after,
        requests=requests,
        unresponsive_engines=answer.unresponsive,
    )
    return Asked(attempt, answer.hits)
