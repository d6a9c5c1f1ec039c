"""The join of a request's search hits with its pages: a pure state machine.

`step(state, event) -> (state, effects)`. No I/O, no clock, no Kafka: everything it decides from
is in the events, so that any redelivery, in any order, decides the same.

    None ──hits or page──> COLLECTING ──all pages, or due──> CLOSING ──emitted──> DONE ──due──> None

The state between deciding and done matters. On entering CLOSING the set of pages is frozen; the
caller stores that state durably *before* it sends the context, and reports `Emitted` *after* the
broker has acknowledged it. A worker that dies in between finds CLOSING again and sends the very
same bytes; whatever arrives meanwhile changes nothing. DONE remembers the request for a while,
so that a redelivery is recognised, and is then forgotten.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from schemas import JoinDue, PageFetched, SearchHits

__all__ = [
    "CloseReason",
    "EmitContext",
    "Emitted",
    "JoinState",
    "Phase",
    "decode_state",
    "encode_state",
    "merge",
    "resume",
    "step",
]

# Pages can arrive before their hits. An answered search gives twenty pages at most; a search
# repeated after a crash may give twenty others. More than that is not of this request's making.
MAX_EARLY_PAGES = 40


class Phase(enum.StrEnum):
    """Where a request stands in the join."""

    COLLECTING = "collecting"
    CLOSING = "closing"
    DONE = "done"


_ORDER = tuple(Phase)


class CloseReason(enum.StrEnum):
    """Why the context was closed."""

    COMPLETE = "complete"
    DEADLINE = "deadline"


class JoinState(msgspec.Struct, kw_only=True, frozen=True):
    """What the join knows of one request.

    `pages` are keyed by rank and a digest of the address, which they themselves no longer hold.
    `due_at` is when the clock should tick for this request
    next: its deadline while collecting, at once while closing, its expiry when done.
    """

    phase: Phase
    due_at: datetime
    hits: SearchHits | None = None
    pages: dict[str, PageFetched] = msgspec.field(default_factory=dict)
    close_reason: CloseReason | None = None

    @property
    def pages_by_rank(self) -> dict[int, PageFetched]:
        """The pages that belong to the hits."""
        if self.hits is None:
            return {}
        wanted = {_key(hit.rank, hit.url): hit.rank for hit in self.hits.hits}
        return {wanted[key]: page for key, page in self.pages.items() if key in wanted}


@dataclass(frozen=True, slots=True)
class Emitted:
    """The context was sent and acknowledged at this time."""

    at: datetime


@dataclass(frozen=True, slots=True)
class EmitContext:
    """Store the state durably, send the context made from it, then step with `Emitted`."""


def encode_state(state: JoinState) -> bytes:
    """The state as stored in the table."""
    return msgspec.json.encode(state)


def decode_state(data: bytes) -> JoinState:
    """The state as read from the table. Raises `msgspec.DecodeError` when it is damaged."""
    return msgspec.json.decode(data, type=JoinState)


def merge(before: JoinState | None, logged: JoinState) -> JoinState:
    """What stands after `logged` was appended to a changelog that had led to `before`.

    For a while two workers may take a partition for theirs, and both append. Whoever closes a
    request first in the log decides with which pages; later ones change nothing. Nor does a worker
    that knows less than what is logged already take anything back.
    """
    if before is None:
        return logged
    if before.phase is not Phase.COLLECTING or logged.phase is not Phase.COLLECTING:
        return logged if _ORDER.index(logged.phase) > _ORDER.index(before.phase) else before
    base = logged if before.hits is None and logged.hits is not None else before
    pages = {**logged.pages, **before.pages}
    if base.hits is not None:
        wanted = {_key(hit.rank, hit.url) for hit in base.hits.hits}
        pages = {key: page for key, page in pages.items() if key in wanted}
    kept = dict(itertools.islice(pages.items(), MAX_EARLY_PAGES))
    return msgspec.structs.replace(base, pages=kept)


def resume(state: JoinState | None) -> tuple[JoinState | None, EmitContext | None]:
    """Go on from a state that another worker had a part in: close it, or send what it closed."""
    if state is None or state.phase is Phase.DONE:
        return state, None
    return _again(state) if state.phase is Phase.CLOSING else _close_if_complete(state)


def step(
    state: JoinState | None,
    event: SearchHits | PageFetched | JoinDue | Emitted,
    *,
    arrived_at: datetime,
    remember: timedelta,
) -> tuple[JoinState | None, EmitContext | None]:
    """The state after `event`, and what must be done now.

    `arrived_at` is the event's own record timestamp, used only to bound how long a request
    without hits is kept; `remember` is for how long an unfinished or finished request is.
    A state of None means that nothing is known, or remembered any longer.
    """
    match event:
        case SearchHits():
            return _on_hits(state, event)
        case PageFetched():
            return _on_page(state, event, arrived_at + remember)
        case JoinDue():
            return _on_due(state, event)
        case Emitted():
            return _on_emitted(state, event, remember)


def _on_hits(
    state: JoinState | None, hits: SearchHits
) -> tuple[JoinState | None, EmitContext | None]:
    if state is not None and state.hits is not None:
        return _again(state)
    if state is not None and state.phase is Phase.DONE:
        return state, None
    early = state.pages if state is not None else {}
    wanted = {_key(hit.rank, hit.url) for hit in hits.hits}
    kept = {key: page for key, page in early.items() if key in wanted}
    return _close_if_complete(
        JoinState(phase=Phase.COLLECTING, due_at=hits.deadline_at, hits=hits, pages=kept)
    )


def _on_page(
    state: JoinState | None, page: PageFetched, forget_at: datetime
) -> tuple[JoinState | None, EmitContext | None]:
    if state is None:
        state = JoinState(phase=Phase.COLLECTING, due_at=forget_at)
    if state.phase is not Phase.COLLECTING:
        return _again(state)
    key = _key(page.rank, page.url)
    if key in state.pages or not _expected(state, key):
        return state, None
    pages = {**state.pages, key: _slim(page)}
    return _close_if_complete(msgspec.structs.replace(state, pages=pages))


def _on_due(state: JoinState | None, due: JoinDue) -> tuple[JoinState | None, EmitContext | None]:
    if state is None or due.due_at != state.due_at:
        return state, None  # a tick for another time than the one that counts now
    if state.phase is Phase.DONE or (state.phase is Phase.COLLECTING and state.hits is None):
        return None, None
    if state.phase is Phase.CLOSING:
        return _again(state)
    # All pages are there, and nobody noticed, when two workers had one each.
    return _close(state, CloseReason.COMPLETE if _complete(state) else CloseReason.DEADLINE)


def _on_emitted(
    state: JoinState | None, emitted: Emitted, remember: timedelta
) -> tuple[JoinState | None, EmitContext | None]:
    if state is None or state.phase is not Phase.CLOSING:
        return state, None
    return JoinState(phase=Phase.DONE, due_at=emitted.at + remember), None


def _again(state: JoinState) -> tuple[JoinState, EmitContext | None]:
    # A closing state that sees another event was found after a crash: the context may not have
    # been sent, so it is sent (again) with the same bytes.
    return state, EmitContext() if state.phase is Phase.CLOSING else None


def _close_if_complete(state: JoinState) -> tuple[JoinState, EmitContext | None]:
    return _close(state, CloseReason.COMPLETE) if _complete(state) else (state, None)


def _complete(state: JoinState) -> bool:
    if state.hits is None:
        return False
    return not state.hits.pages_wanted or len(state.pages) == len(state.hits.hits)


def _close(state: JoinState, reason: CloseReason) -> tuple[JoinState, EmitContext]:
    return msgspec.structs.replace(state, phase=Phase.CLOSING, close_reason=reason), EmitContext()


def _expected(state: JoinState, key: str) -> bool:
    if state.hits is None:
        return len(state.pages) < MAX_EARLY_PAGES
    return any(key == _key(hit.rank, hit.url) for hit in state.hits.hits)


def _key(rank: int, url: str) -> str:
    # A digest: twenty addresses, each in several places, would outgrow a record.
    return f"{rank} {hashlib.sha256(url.encode()).hexdigest()[:32]}"


def _slim(page: PageFetched) -> PageFetched:
    # What judging does not read is not stored with the state; it stays on its own topic.
    return msgspec.structs.replace(
        page, url="", final_url="", content_type="", charset="", title="", stage=""
    )
