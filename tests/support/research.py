"""Fakes and fixtures for tests of the research corpus: no network, no clock, no database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from citeflow.fetch.outcome import FetchOutcome, FetchStatus
from citeflow.search.outcome import SearchHit, SearchOutcome, SearchStatus
from citeflow.settings import SiteConfig

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)

F1 = (
    "Lithium cells lose capacity when repeatedly charged above eighty percent at high temperatures."
)
F2 = (
    "Municipal composting programmes divert kitchen scraps from landfill into agricultural soil "
    "amendments every year."
)
F3 = "Sailing crews reef early if gusts exceed twenty knots near rocky exposed headlands today."
F4 = (
    "Sourdough starters ferment faster inside warm kitchens because wild yeast multiplies quickly "
    "there."
)
F5 = (
    "Alpine glaciers retreat uphill as summer melting outpaces their annual snowfall across steep "
    "northern basins."
)
D1 = (
    "A history of canal building across three provinces, covering finance, labour disputes, lock "
    "design and decline."
)


def config(**values: object) -> SiteConfig:
    """Settings that ignore the environment of the test run."""
    return SiteConfig(values, environ={})


def result(host: str, snippet: str, *, title: str = "T", content: str = "") -> dict[str, Any]:
    """A search result on `https://<host>/x`."""
    return {"title": title, "url": f"https://{host}/x", "snippet": snippet, "content": content}


def five(**replaced: str) -> list[dict[str, Any]]:
    """F1 to F5 on a.example to e.example; `five(b="cs.example.edu")` replaces a host."""
    hosts = [replaced.get(letter, f"{letter}.example") for letter in "abcde"]
    return [result(host, text) for host, text in zip(hosts, (F1, F2, F3, F4, F5), strict=True)]


class FakeSearch:
    """Answers every query with the same hits and remembers the queries."""

    def __init__(self, *hits: SearchHit, status: SearchStatus | None = None) -> None:
        self.outcome = SearchOutcome(
            status or (SearchStatus.OK if hits else SearchStatus.EMPTY), tuple(hits)
        )
        self.calls: list[tuple[str, int]] = []

    async def search(self, query: str, k: int = 5, timeout: float | None = None) -> SearchOutcome:
        self.calls.append((query, k))
        return self.outcome


class FakeFetcher:
    """Reads pages from a dict; what is not in it is a 404."""

    def __init__(self, pages: dict[str, str]) -> None:
        self.pages = pages
        self.calls: list[str] = []

    async def fetch(self, url: str, *, timeout: float | None = None) -> FetchOutcome:
        self.calls.append(url)
        if url in self.pages:
            return FetchOutcome(FetchStatus.OK, url, http_status=200, text=self.pages[url])
        return FetchOutcome(FetchStatus.HTTP_ERROR, url, http_status=404)


class FakeWeb:
    """A web tier that returns prepared results and counts its calls."""

    def __init__(self, results: list[dict[str, Any]], *, error: Exception | None = None) -> None:
        self.results = results
        self.error = error
        self.calls: list[str] = []

    async def _answer(self, name: str) -> list[dict[str, Any]]:
        self.calls.append(name)
        if self.error is not None:
            raise self.error
        return [dict(each) for each in self.results]

    async def search(self, query: str, num_results: int = 5) -> list[dict[str, Any]]:
        return await self._answer("search")

    async def search_simple(self, query: str, num_results: int = 5) -> list[dict[str, Any]]:
        return await self._answer("search_simple")


class FakePool:
    """A database pool with prepared rows, or one that fails."""

    def __init__(self, rows: list[dict[str, Any]], *, error: Exception | None = None) -> None:
        self.rows = rows
        self.error = error
        self.calls: list[tuple[Any, ...]] = []

    async def fetch(self, query: str, *args: Any) -> list[dict[str, Any]]:
        self.calls.append((query, *args))
        if self.error is not None:
            raise self.error
        return self.rows
