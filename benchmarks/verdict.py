"""What the topics hold after a run, against what was promised."""

from __future__ import annotations

import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Set
from dataclasses import dataclass, field
from typing import Any, TypeVar

import schemas
from streams.log_reader import read_log

__all__ = ["kept", "verdict"]

R = TypeVar("R", bound=schemas.Record)


@dataclass
class _Answers:
    """The contexts by request: each different value, and the first with the time it was put."""

    records: int = 0
    values: defaultdict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    first: dict[str, schemas.ContextReady] = field(default_factory=dict)
    at: dict[str, float] = field(default_factory=dict)


async def verdict(broker: str, valid: Set[str], invalid: int) -> dict[str, Any]:
    """The report of a run: `valid` are the ids of requests that must be answered."""
    answers = await _answers(broker)
    asked_at = dict[str, float]()
    async for record in read_log(broker, "topics.requested"):
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            asked_at[json.loads(record.value).get("request_id")] = record.timestamp / 1000
    rejected = {letter.event_id async for _, letter in _read(broker, schemas.EventRejected)}
    missing = valid - answers.values.keys()
    differing = _differing(answers.values)
    latencies = sorted(at - asked_at[name] for name, at in answers.at.items() if name in asked_at)
    reasons: Counter[str] = Counter()
    for context in answers.first.values():
        reasons.update(context.reasons)
    return {
        "valid": len(valid),
        "invalid": invalid,
        "contexts": len(answers.values),
        "missing": len(missing),
        "missing_after": await _furthest(broker, missing),
        "contradictory": len(differing),
        "differing": differing,
        "unasked": len(answers.values.keys() - valid),
        "repeats": answers.records - len(answers.values),
        "rejected": len(rejected),
        "findings": sum([1 async for _ in read_log(broker, "audit.findings")]),
        "outcomes": dict(Counter(context.outcome.value for context in answers.first.values())),
        "reasons": dict(reasons.most_common(5)),
        "late_though_read": await _late_though_read(broker, answers.first),
        "p50_s": round(latencies[len(latencies) // 2], 2) if latencies else None,
        "p99_s": round(latencies[int(len(latencies) * 0.99)], 2) if latencies else None,
    }


def kept(report: dict[str, Any]) -> bool:
    """Whether the promise was kept: each valid request one value, each invalid one rejection."""
    wrong = report["missing"] or report["contradictory"] or report["unasked"]
    return not wrong and bool(report["rejected"] == report["invalid"])


async def _read(broker: str, record_type: type[R]) -> AsyncIterator[tuple[Any, R]]:
    """The readable records of a type's topic."""
    async for record in read_log(broker, _TOPICS[record_type]):
        with contextlib.suppress(schemas.EventError):
            yield record, schemas.decode(record.value, record_type)


_TOPICS: dict[type[schemas.Record], str] = {
    schemas.TopicRequested: "topics.requested",
    schemas.SearchHits: "search.hits",
    schemas.PageFetched: "pages.fetched",
    schemas.ContextReady: "context.ready",
    schemas.EventRejected: "events.rejected",
}


async def _answers(broker: str) -> _Answers:
    answers = _Answers()
    async for record, context in _read(broker, schemas.ContextReady):
        answers.records += 1
        answers.values[context.request_id].add(record.value)
        answers.first.setdefault(context.request_id, context)
        answers.at.setdefault(context.request_id, record.timestamp / 1000)
    return answers


def _differing(values: dict[str, set[bytes]]) -> dict[str, dict[str, list[str]]]:
    """Of requests with several answers, the fields that differ and what they hold."""
    found = {}
    for name, variants in values.items():
        if len(variants) > 1:
            documents = [json.loads(variant) for variant in variants]
            found[name] = {
                field: shown
                for field in documents[0]
                if len(set(shown := [json.dumps(d.get(field))[:300] for d in documents])) > 1
            }
    return found


async def _furthest(broker: str, missing: Set[str]) -> dict[str, list[str]]:
    """The last topic that the missing requests reached, and where they stand on it."""
    reached = dict[str, tuple[str, str]]()
    if not missing:
        return {}
    for record_type in (schemas.TopicRequested, schemas.SearchHits, schemas.PageFetched):
        async for record, event in _read(broker, record_type):
            name = str(getattr(event, "request_id", None))
            if name in missing:
                place = f"{name} at {record.partition}-{record.offset}"
                reached[name] = _TOPICS[record_type], place
    places: defaultdict[str, list[str]] = defaultdict(list)
    for topic, place in reached.values():
        places[topic].append(place)
    return {topic: sorted(found) for topic, found in places.items()}


async def _late_though_read(broker: str, contexts: dict[str, schemas.ContextReady]) -> int:
    """Of the requests that were answered at their deadline, how many had all their pages read by
    then: these waited for the join, the others for reading."""
    late = {name for name, context in contexts.items() if "deadline_passed" in context.reasons}
    left = dict[str, set[int]]()
    if not late:
        return 0
    async for _, hits in _read(broker, schemas.SearchHits):
        if hits.request_id in late:
            left.setdefault(hits.request_id, {hit.rank for hit in hits.hits})
    async for record, page in _read(broker, schemas.PageFetched):
        if page.request_id in left:
            deadline = contexts[page.request_id].timings.deadline_at.timestamp()
            if record.timestamp / 1000 < deadline:
                left[page.request_id].discard(page.rank)
    # One without hits was never to be read.
    return sum(not ranks and bool(contexts[name].pages) for name, ranks in left.items())
