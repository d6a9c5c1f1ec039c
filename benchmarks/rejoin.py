"""How many stored requests a second one core judges and renders again, and where the time goes.

    python -m benchmarks.rejoin [--requests 2000]

Each request has five results and pages of 2,000 characters, decoded from their JSON as a replay
decodes them. Beside it, in the same run: decoding alone, which no replay can go under.
"""

from __future__ import annotations

import argparse
import logging
import random
import time
from datetime import UTC, datetime

import schemas
from streams.replay import rejoin
from streams.stored import StoredRequest

T0 = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = [f"{start}{end}" for start in ("har", "gra", "led", "orc", "bea", "tim") for end in
         ("bour", "nite", "ger", "hard", "con", "ber", "nace", "dow", "per", "tern")]  # fmt: skip


def _stored(number: int) -> tuple[bytes, list[bytes]]:
    rng = random.Random(number)
    hits = tuple(
        schemas.Hit(
            rank=rank,
            title=" ".join(rng.choices(WORDS, k=8)),
            url=f"https://site{rng.randrange(500)}.example/{number}/{rank}",
            snippet=" ".join(rng.choices(WORDS, k=35)),
        )
        for rank in range(5)
    )
    record = schemas.SearchHits(
        event_id="e", request_id=f"r{number}", topic=" ".join(rng.choices(WORDS, k=4)),
        category="c", max_results=5, requested_at=T0, searched_at=T0, deadline_at=T0, status="ok",
        pages_wanted=True, hits=hits,
    )  # fmt: skip
    pages = [
        schemas.PageFetched(
            event_id="p", request_id=record.request_id, rank=hit.rank, url=hit.url, status="ok",
            fetched_at=T0, text=" ".join(rng.choices(WORDS, k=280))[:2000],
        )
        for hit in hits
    ]  # fmt: skip
    return schemas.encode(record), [schemas.encode(page) for page in pages]


def _decode(stored: tuple[bytes, list[bytes]]) -> StoredRequest:
    hits = schemas.decode(stored[0], schemas.SearchHits)
    pages = [schemas.decode(page, schemas.PageFetched) for page in stored[1]]
    return StoredRequest(hits, 0, 0, {page.rank: page for page in pages})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    count = parser.parse_args().requests
    logging.disable(logging.WARNING)
    log = [_stored(number) for number in range(count)]
    started = time.process_time()
    for entry in log:
        _decode(entry)
    decoding = time.process_time() - started
    started = time.process_time()
    for entry in log:
        schemas.encode(rejoin(_decode(entry), {}))
    whole = time.process_time() - started
    print(f"{count} requests: {count / whole:.0f} a second of CPU time")
    print(f"decoding alone: {count / decoding:.0f} a second, {decoding / whole:.0%} of the whole")


if __name__ == "__main__":
    main()
