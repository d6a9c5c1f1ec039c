"""DuckDuckGo, through the ddgs package's engine in worker processes that can be killed.

The engine's HTTP client impersonates a browser, which is why it is used; it is native code that
has been seen to hang for hours while holding the interpreter lock, where no timeout of this
process would fire. So it runs in a worker process that is killed at the deadline.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import logging
import random
from typing import TYPE_CHECKING

import msgspec

from citeflow.search.backend import BackendAnswer
from citeflow.search.duckduckgo_job import JobAnswer, JobRequest
from citeflow.search.outcome import SearchStatus
from citeflow.search.retry import RetryPolicy, Sleep, Uniform, ask_with_retries
from citeflow.workers import WorkerError, WorkerPool, WorkerTimeout

if TYPE_CHECKING:
    from citeflow.settings import SiteConfig

__all__ = ["ENGINE_URL", "JOB_TARGET", "DuckDuckGoBackend"]

logger = logging.getLogger(__name__)

ENGINE_URL = "https://html.duckduckgo.com/html/"
"""The page the engine asks, as ddgs has it."""

JOB_TARGET = "citeflow.search.duckduckgo_job:run"

# Each worker holds one search at a time and about 40 MB; an engine that sees more than a few
# searches at once from one address answers with a challenge.
_POOL_SIZE = 4

# The worker kills itself out of a slow answer a little before its parent would kill it, which
# saves the start of a new one; the parent's deadline is for the hang that the worker cannot see.
_CLIENT_SHARE_OF_TIMEOUT = 0.95

# All of a job that its deadline does not cover: finding a free worker while others are being
# killed and replaced. Longer, and a search would exceed its timeout for want of a worker.
_QUEUE_GRACE_SECONDS = 0.25

_decode_answer = msgspec.json.Decoder(JobAnswer).decode
_encode = msgspec.json.Encoder().encode


@functools.cache
def _shared_pool() -> WorkerPool:
    """The pool of this process; its workers start with the first searches."""
    return WorkerPool(JOB_TARGET, size=_POOL_SIZE)


class DuckDuckGoBackend:
    """`html.duckduckgo.com` in the engine's own order, asked again with back-off on failure.

    `engine_url`, `pool`, `sleep` and `uniform` stand in for the real engine, its workers, time
    and chance.
    """

    name = "duckduckgo"
    needs = "the ddgs package"

    def __init__(
        self,
        site_config: SiteConfig,
        *,
        engine_url: str = ENGINE_URL,
        pool: WorkerPool | None = None,
        sleep: Sleep = asyncio.sleep,
        uniform: Uniform = random.uniform,
    ) -> None:
        self._site_config = site_config
        self._engine_url = engine_url
        self._pool = pool
        self._sleep = sleep
        self._uniform = uniform

    def available(self) -> bool:
        """True when the ddgs package is installed."""
        return importlib.util.find_spec("ddgs") is not None

    async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
        """See `SearchBackend.search`."""
        policy = RetryPolicy(
            attempts=self._site_config.get_int("web_research_ddg_retry_attempts"),
            base_delay=self._site_config.get_float("web_research_ddg_retry_base_delay_ms") / 1000,
        )
        return await ask_with_retries(
            lambda: self._ask(query, k, timeout), policy, sleep=self._sleep, uniform=self._uniform
        )

    async def aclose(self) -> None:
        """Nothing to release: the workers are shared by the whole process."""

    async def _ask(self, query: str, k: int, timeout: float) -> BackendAnswer:
        request = JobRequest(
            query=query,
            k=k,
            url=self._engine_url,
            timeout=timeout * _CLIENT_SHARE_OF_TIMEOUT,
        )
        pool = self._pool or _shared_pool()
        try:
            async with asyncio.timeout(timeout + _QUEUE_GRACE_SECONDS):
                answer = _decode_answer(await pool.run(_encode(request), timeout=timeout))
        except (WorkerTimeout, TimeoutError):
            return BackendAnswer(SearchStatus.TIMEOUT, detail=f"no answer within {timeout:g} s")
        except (WorkerError, msgspec.MsgspecError) as exc:
            # A crash of the native client, a module that is gone, markup that breaks the parser.
            logger.warning("the DuckDuckGo worker failed: %s", exc)
            return BackendAnswer(SearchStatus.UNAVAILABLE, detail="the search client failed")
        return BackendAnswer(
            answer.status,
            tuple(answer.hits),
            answer.detail,
            answer.retry_after,
            retryable=answer.retryable,
        )
