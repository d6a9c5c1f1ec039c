"""Web search as plain functions, each with an asynchronous twin.

    from citeflow import web_search
    for source in web_search("FastAPI streaming responses"):
        print(source.title, source.url)

`web_search` gives the results, `web_search_verbose` adds a note for people, and
`web_search_with_provenance` says how they were obtained; each is a projection of the next, and all
are projections of what `SearchChain.search` returns. They never raise: results are `[]` whatever
went wrong, and the note and the provenance say what that was.
"""

from __future__ import annotations

from dataclasses import dataclass

from citeflow.running import run_to_end
from citeflow.search.backend import SearchBackend
from citeflow.search.chain import SearchChain
from citeflow.search.outcome import SearchOutcome, SearchProvenance
from citeflow.settings import SiteConfig

__all__ = [
    "Source",
    "available_backends",
    "aweb_search",
    "aweb_search_outcome",
    "aweb_search_verbose",
    "aweb_search_with_provenance",
    "backend_names",
    "web_search",
    "web_search_outcome",
    "web_search_verbose",
    "web_search_with_provenance",
]


@dataclass
class Source:
    """One result: its title, its address (never a redirector's), and the engine's snippet."""

    title: str
    url: str
    snippet: str


async def aweb_search_outcome(
    query: str, k: int = 5, timeout_s: float = 8.0, *, site_config: SiteConfig | None = None
) -> SearchOutcome:
    """The whole truth about a search, see `SearchChain.search`.

    `k` results at most (1 to 100), within `timeout_s` seconds in all. `site_config` defaults to
    the settings in the environment.
    """
    async with SearchChain(site_config or SiteConfig()) as chain:
        return await chain.search(_text(query), _count(k), _seconds(timeout_s))


async def aweb_search_with_provenance(
    query: str, k: int = 5, timeout_s: float = 8.0, *, site_config: SiteConfig | None = None
) -> tuple[list[Source], str | None, SearchProvenance]:
    """As `web_search_with_provenance`."""
    outcome = await aweb_search_outcome(query, k, timeout_s, site_config=site_config)
    sources = [Source(hit.title, hit.url, hit.snippet) for hit in outcome.hits]
    return sources, outcome.note, outcome.provenance


async def aweb_search_verbose(
    query: str, k: int = 5, timeout_s: float = 8.0, *, site_config: SiteConfig | None = None
) -> tuple[list[Source], str | None]:
    """As `web_search_verbose`."""
    found = await aweb_search_with_provenance(query, k, timeout_s, site_config=site_config)
    return found[0], found[1]


async def aweb_search(
    query: str, k: int = 5, timeout_s: float = 8.0, *, site_config: SiteConfig | None = None
) -> list[Source]:
    """As `web_search`."""
    return (await aweb_search_with_provenance(query, k, timeout_s, site_config=site_config))[0]


def web_search_outcome(
    query: str, k: int = 5, timeout_s: float = 8.0, *, site_config: SiteConfig | None = None
) -> SearchOutcome:
    """The whole truth about a search; as `aweb_search_outcome`, for code that is not async."""
    return run_to_end(lambda: aweb_search_outcome(query, k, timeout_s, site_config=site_config))


def web_search_with_provenance(
    query: str, k: int = 5, timeout_s: float = 8.0, *, site_config: SiteConfig | None = None
) -> tuple[list[Source], str | None, SearchProvenance]:
    """Results, a note, and how they were obtained.

    The provenance names the backend that answered (None: none did), whether the results come from
    the cache (up to six hours old), the query they answer (another one than was asked when that
    was challenged and a broader one answered), every backend asked, in order, and whether one of
    them challenged us. At most `k` results within `timeout_s` seconds in all. Safe to call from
    any thread, also while an event loop runs in it, which it then blocks.
    """
    return run_to_end(
        lambda: aweb_search_with_provenance(query, k, timeout_s, site_config=site_config)
    )


def web_search_verbose(
    query: str, k: int = 5, timeout_s: float = 8.0, *, site_config: SiteConfig | None = None
) -> tuple[list[Source], str | None]:
    """Results and a note: None for an ordinary search, else a sentence on what was different.

    An empty list with a note is not evidence that nothing matched.
    """
    return run_to_end(lambda: aweb_search_verbose(query, k, timeout_s, site_config=site_config))


def web_search(
    query: str, k: int = 5, timeout_s: float = 8.0, *, site_config: SiteConfig | None = None
) -> list[Source]:
    """At most `k` results in the engine's order within `timeout_s` seconds; `[]` on failure."""
    return run_to_end(lambda: aweb_search(query, k, timeout_s, site_config=site_config))


def available_backends(*, site_config: SiteConfig | None = None) -> list[SearchBackend]:
    """The backends that a search would ask now, in order. Asks nobody."""
    return SearchChain(site_config or SiteConfig()).available()


def backend_names(*, site_config: SiteConfig | None = None) -> list[str]:
    """The names of the available backends, in order."""
    return [backend.name for backend in available_backends(site_config=site_config)]


def _text(query: object) -> str:
    return query if isinstance(query, str) else ""


def _count(k: object) -> int:
    try:
        return int(k)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        return 5


def _seconds(timeout_s: object) -> float | None:
    try:
        return float(timeout_s) if isinstance(timeout_s, int | float) else None
    except OverflowError:
        return None
