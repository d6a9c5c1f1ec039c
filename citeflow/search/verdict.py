"""What the answers of several backends come to: one status, one note, one provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citeflow.search.outcome import SearchAttempt, SearchOutcome, SearchProvenance, SearchStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citeflow.search.ask import Asked
    from citeflow.search.backend import SearchBackend

__all__ = ["clause", "conclude", "nobody_to_ask"]

NOT_EVIDENCE = "This is not evidence that nothing matched."

# When several backends failed, the outcome has the status that says most about what to do next:
# a refusal before a timeout before a broken set-up.
_FAILURES_BY_WEIGHT = (
    SearchStatus.CHALLENGED,
    SearchStatus.RATE_LIMITED,
    SearchStatus.BLOCKED,
    SearchStatus.TIMEOUT,
    SearchStatus.UNREACHABLE,
    SearchStatus.UNAVAILABLE,
)

_FAILURE_WORDS = {
    SearchStatus.CHALLENGED: "challenged the request",
    SearchStatus.RATE_LIMITED: "asked for fewer requests",
    SearchStatus.BLOCKED: "refused the request",
    SearchStatus.TIMEOUT: "did not answer in time",
    SearchStatus.UNREACHABLE: "could not be reached",
    SearchStatus.UNAVAILABLE: "could not be used",
}


def conclude(query: str, rounds: Sequence[Sequence[Asked]]) -> SearchOutcome:
    """The outcome of a search: `rounds` holds who was asked, one round for each form of `query`."""
    attempts = tuple(asked.attempt for answered in rounds for asked in answered)
    last_round = [asked.attempt for asked in rounds[-1]]
    final = rounds[-1][-1]
    form = final.attempt.query
    failed = [attempt for attempt in attempts if not attempt.status.answered]
    empty = [a.backend for a in last_round if a.status is SearchStatus.EMPTY]
    honest_zero = not final.hits and all(attempt.status.answered for attempt in last_round)
    provenance = SearchProvenance(
        backend=final.attempt.backend if final.hits else None,
        query_used=form,
        backends_tried=tuple(attempt.backend for attempt in attempts if attempt.requests),
        challenged=not honest_zero and any(a.status is SearchStatus.CHALLENGED for a in attempts),
        attempts=attempts,
    )
    if final.hits:
        note = _note_with_hits(form, last_round, broadened=len(rounds) > 1)
        return SearchOutcome(SearchStatus.OK, final.hits, note, provenance)
    if honest_zero:
        note = None if form == query else f"no results for {query!r} or the broader {form!r}"
        return SearchOutcome(SearchStatus.EMPTY, note=note, provenance=provenance)
    clauses = "; ".join(dict.fromkeys(clause(attempt) for attempt in failed))
    if empty:
        clauses = f"inconclusive: {', '.join(empty)} found nothing, but {clauses}"
    if form != query:
        clauses += f"; broader forms down to {form!r} fared no better"
    statuses = {attempt.status for attempt in failed}
    return SearchOutcome(
        next(status for status in _FAILURES_BY_WEIGHT if status in statuses),
        note=f"{clauses}. {NOT_EVIDENCE}",
        provenance=provenance,
        retry_after=min((a.retry_after for a in failed if a.retry_after is not None), default=None),
    )


def _note_with_hits(
    form: str, last_round: Sequence[SearchAttempt], *, broadened: bool
) -> str | None:
    name = last_round[-1].backend
    clauses = "; ".join(clause(a) for a in last_round if not a.status.answered)
    answered = f"answered by {name}" + (f" ({clauses})" if clauses else "")
    if broadened:
        return (
            "the original query was challenged by every backend; these are results for the "
            f"broader query {form!r}, {answered}"
        )
    return answered if len(last_round) > 1 else None


def clause(attempt: SearchAttempt) -> str:
    """A failed attempt as a clause for people."""
    if not attempt.requests and attempt.detail.startswith("not asked"):
        return f"{attempt.backend} was {attempt.detail}"
    detail = f" ({attempt.detail})" if attempt.detail else ""
    return f"{attempt.backend} {_FAILURE_WORDS[attempt.status]}{detail}"


def nobody_to_ask(query: str, backends: Sequence[SearchBackend]) -> SearchOutcome:
    """The outcome when no backend is available; each is named with what it lacks."""
    missing = "; ".join(f"{backend.name} needs {backend.needs}" for backend in backends)
    return SearchOutcome(
        SearchStatus.UNAVAILABLE,
        note="no search backend can be asked: "
        + (missing or "web_research_backends names none that is known")
        + f". {NOT_EVIDENCE}",
        provenance=SearchProvenance(query_used=query),
    )
