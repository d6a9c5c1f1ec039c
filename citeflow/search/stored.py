"""Searches that were stored, and searches under way: what need not be asked again."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from citeflow import cache
from citeflow.search.links import is_web_url
from citeflow.search.outcome import SearchHit, SearchOutcome, SearchProvenance, SearchStatus
from citeflow.search.single_flight import SingleFlight
from citeflow.search.text import make_hit

if TYPE_CHECKING:
    from citeflow.search.backend import SearchBackend
    from citeflow.settings import SiteConfig

__all__ = ["SearchStore"]

T = TypeVar("T")

# Goes into the key: an entry in a form of the past is never read as one of today's.
_FORM = 1


# Not the loop's own threads: a program may fill those with calls of `web_search`, which wait for
# the very search that would need one of them.
@functools.lru_cache(maxsize=1)
def _threads(_pid: int) -> concurrent.futures.ThreadPoolExecutor:
    """The threads of this process: a fork has none of its parent's."""
    return concurrent.futures.ThreadPoolExecutor(4, thread_name_prefix="citeflow-cache")


# A disk that takes longer than this (a network mount that is gone) is no cache.
_DISK_SECONDS = 1.0

_flights: SingleFlight[SearchOutcome] = SingleFlight()


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A search as it is stored."""

    hits: list[tuple[str, str, str]]
    note: str | None
    backend: str
    query_used: str
    backends_tried: list[str]


class SearchStore:
    """The cache of searches, off and on as the settings say at each call."""

    def __init__(self, site_config: SiteConfig) -> None:
        self._config = site_config

    async def through(
        self,
        query: str,
        k: int,
        backends: Sequence[SearchBackend],
        until: float,
        ask: Callable[[], Awaitable[SearchOutcome]],
    ) -> SearchOutcome:
        """The stored search if there is one; else that of `ask`, stored when it has hits.

        While the same search is under way its outcome is waited for, until the monotonic time
        `until`. With the cache turned off everything is asked.
        """
        if not cache.cache_enabled(self._config):
            return await ask()
        # The servers too: two SearXNG instances are not the same engine.
        servers = [f"{backend.name} {backend.endpoint}" for backend in backends]
        key = cache.make_key("search", _FORM, query, k, *servers)

        async def load_or_ask() -> SearchOutcome:
            ttl = self._config.get_float("research_cache_ttl_seconds")
            value = await _in_thread(until, cache.load, key, ttl, site_config=self._config)
            stored = _read(value, k)
            if stored is not None:
                return stored
            outcome = await ask()
            if outcome.hits:
                value = msgspec.to_builtins(_entry(outcome))
                await _in_thread(until, cache.store, key, value, site_config=self._config)
            return outcome

        name = f"{cache.cache_dir(self._config)}:{key}"
        while True:
            left = until - time.monotonic()
            try:
                outcome, ours = await _flights.run(name, load_or_ask, patience=left)
            except TimeoutError:
                return SearchOutcome(
                    SearchStatus.TIMEOUT,
                    note="the same search was under way and took too long. "
                    "This is not evidence that nothing matched.",
                    provenance=SearchProvenance(query_used=query),
                )
            # Another caller's shorter patience is not an answer for this one.
            if ours or outcome.status is not SearchStatus.TIMEOUT:
                return outcome


async def _in_thread(
    until: float, work: Callable[..., T], *args: object, **kwargs: object
) -> T | None:
    """What `work` returns, None if it takes too long."""
    loop = asyncio.get_running_loop()
    seconds = min(_DISK_SECONDS, until - time.monotonic())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await loop.run_in_executor(
                _threads(os.getpid()), functools.partial(work, *args, **kwargs)
            )
    return None


def _entry(outcome: SearchOutcome) -> _Entry:
    provenance = outcome.provenance
    return _Entry(
        hits=[(hit.title, hit.url, hit.snippet) for hit in outcome.hits],
        note=outcome.note,
        backend=provenance.backend or "",
        query_used=provenance.query_used,
        backends_tried=list(provenance.backends_tried),
    )


def _read(value: object, k: int) -> SearchOutcome | None:
    """The outcome that was stored, None for anything else: the file may have been tampered with."""
    if value is None:
        return None
    try:
        entry = msgspec.convert(value, _Entry)
    except msgspec.ValidationError:
        return None
    made = [make_hit(*hit) if is_web_url(hit[1]) else None for hit in entry.hits[:k]]
    hits: tuple[SearchHit, ...] = tuple(hit for hit in made if hit is not None)
    if not hits:
        return None
    return SearchOutcome(
        SearchStatus.OK,
        hits,
        entry.note,
        SearchProvenance(
            backend=entry.backend or None,
            cached=True,
            query_used=entry.query_used,
            backends_tried=tuple(entry.backends_tried),
        ),
    )
