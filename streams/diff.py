"""What changes between two contexts of the same request, and between two sets of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

import schemas

__all__ = ["DiffTotals", "RequestDiff", "compare", "totals"]


class Moved(msgspec.Struct, frozen=True):
    """A source whose place in the corpus changed; places count from 0."""

    url: str
    before: int
    after: int


class Rescored(msgspec.Struct, frozen=True):
    """A source whose score changed."""

    url: str
    before: float
    after: float


class RequestDiff(msgspec.Struct, kw_only=True, frozen=True):
    """How one request's context changed. `corpus_changed` is about its bytes."""

    request_id: str
    topic: str
    corpus_changed: bool
    order_changed: bool
    first_changed: bool
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    rescored: tuple[Rescored, ...] = ()
    duplicates: tuple[int, int] = (0, 0)
    thin: tuple[int, int] = (0, 0)

    @property
    def changed(self) -> bool:
        """Whether anything at all changed."""
        return bool(self.corpus_changed or self.gained or self.lost or self.moved or self.rescored)


class DiffTotals(msgspec.Struct, kw_only=True, frozen=True):
    """The same over all requests; pairs are before and after."""

    requests: int
    corpora_changed: int
    orders_changed: int
    first_sources_changed: int
    sources_gained: int
    sources_lost: int
    duplicates_collapsed: tuple[int, int]
    thin_dropped: tuple[int, int]


def compare(before: schemas.ContextReady, after: schemas.ContextReady) -> RequestDiff:
    """What became of the sources of `before` in `after`."""
    old = {source.url: (place, source) for place, source in enumerate(before.sources)}
    new = {source.url: (place, source) for place, source in enumerate(after.sources)}
    kept = [url for url in old if url in new]
    return RequestDiff(
        request_id=before.request_id,
        topic=before.topic,
        corpus_changed=before.corpus != after.corpus,
        order_changed=list(old) != list(new),
        first_changed=next(iter(old), None) != next(iter(new), None),
        gained=tuple(url for url in new if url not in old),
        lost=tuple(url for url in old if url not in new),
        moved=tuple(
            Moved(url, old[url][0], new[url][0]) for url in kept if old[url][0] != new[url][0]
        ),
        rescored=tuple(
            Rescored(url, old[url][1].overall_score, new[url][1].overall_score)
            for url in kept
            if old[url][1].overall_score != new[url][1].overall_score
        ),
        duplicates=(_dropped(before, "duplicate"), _dropped(after, "duplicate")),
        thin=(_dropped(before, "thin_snippet"), _dropped(after, "thin_snippet")),
    )


def totals(diffs: Sequence[RequestDiff]) -> DiffTotals:
    """The sums over many requests."""
    return DiffTotals(
        requests=len(diffs),
        corpora_changed=sum(diff.corpus_changed for diff in diffs),
        orders_changed=sum(diff.order_changed for diff in diffs),
        first_sources_changed=sum(diff.first_changed for diff in diffs),
        sources_gained=sum(len(diff.gained) for diff in diffs),
        sources_lost=sum(len(diff.lost) for diff in diffs),
        duplicates_collapsed=_sums(diff.duplicates for diff in diffs),
        thin_dropped=_sums(diff.thin for diff in diffs),
    )


def _dropped(context: schemas.ContextReady, reason: str) -> int:
    return sum(drop.reason == reason for drop in context.dropped)


def _sums(pairs: object) -> tuple[int, int]:
    before = after = 0
    for one, other in pairs:  # type: ignore[attr-defined]
        before, after = before + one, after + other
    return before, after
