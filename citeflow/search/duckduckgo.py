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
import os
import time
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from citeflow.search.backend import BackendAnswer
from citeflow.search.duckduckgo_job import JobAnswer, JobRequest
from citeflow.search.outcome import SearchStatus
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

_decode_answer = msgspec.json.Decoder(JobAnswer).decode
_encode = msgspec.json.Encoder().encode


@functools.lru_cache(maxsize=1)
def _shared_pool(_pid: int) -> WorkerPool:
    """The pool of this process, a fork has its own; its workers start with the first searches."""
    return WorkerPool(JOB_TARGET, size=_POOL_SIZE)


class DuckDuckGoBackend:
    """`html.duckduckgo.com` in the engine's own order.

    `engine_url` and `pool` stand in for the real engine and its workers.
    """

    name = "duckduckgo"
    needs = "the ddgs package"
    retried = True
    per_minute_setting = "web_research_ddg_requests_per_minute"
    _page: ClassVar[Literal["html", "lite"]] = "html"

    def __init__(
        self,
        site_config: SiteConfig,
        *,
        engine_url: str = ENGINE_URL,
        pool: WorkerPool | None = None,
    ) -> None:
        self._site_config = site_config
        self._engine_url = engine_url
        self._pool = pool
        # Once, because looking through the path takes a tenth of a millisecond.
        self._installed = importlib.util.find_spec("ddgs") is not None

    @property
    def endpoint(self) -> str:
        """See `SearchBackend.endpoint`."""
        return self._engine_url

    def available(self) -> bool:
        """True when the ddgs package is installed."""
        return self._installed

    async def search(self, query: str, k: int, timeout: float) -> BackendAnswer:
        """See `SearchBackend.search`."""
        request = JobRequest(
            query=query,
            k=k,
            url=self._engine_url,
            expires=time.monotonic() + timeout * _CLIENT_SHARE_OF_TIMEOUT,
            page=self._page,
        )
        pool = self._pool or _shared_pool(os.getpid())
        try:
            # The pool kills a worker that is still busy then; this ends the wait for a free one.
            async with asyncio.timeout(timeout):
                answer = _decode_answer(
                    await pool.run(_encode(request), timeout=timeout, wait_included=True)
                )
        except (WorkerTimeout, TimeoutError):
            return BackendAnswer(SearchStatus.TIMEOUT, detail=f"no answer within {timeout:.3g} s")
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

    async def aclose(self) -> None:
        """Nothing to release: the workers are shared by the whole process."""
