"""How well and how quickly main texts and dates are found, held to pinned floors.

    python benchmarks/extraction.py [--pages FOLDER] [--check | --pin] [--peers] [--pool]

Two sets: the pages in `benchmarks/pages`, which we wrote, and a folder of captured pages that is
not part of the project (`--pages`, or `../shared/pages` beside the checkout), skipped when it is
not there. Both have a `gold.json`.

Scores: full texts by 4-gram shingles of `\\w+` tokens, each page's counts divided by their sum,
precision and recall averaged over pages, F1 of the two means; the same for the first 2,000
characters; snippets by substring; dates by day. `--check` fails when a figure is below the floor
pinned in `extraction-floors.json`; `--pin` writes the floors and refuses to lower one without
`--allow-regression`, which wants a line in the changelog. Times are CPU time, informative only.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import gzip
import json
import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from citeflow.fetch.charset import decode
from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import Extracted, ExtractRequest
from citeflow.fetch.extract import extract_page, run
from citeflow.workers import WorkerPool

HERE = Path(__file__).parent
FLOORS = HERE / "extraction-floors.json"
CAPTURED = HERE.parent.parent / "shared" / "pages"
# A change smaller than this is rounding, not a regression.
TOLERANCE = 0.0005
TODAY = datetime.date(2026, 12, 1)
ALL_CHARS = 1_000_000
START_CHARS = 2_000

_WORD = re.compile(r"\w+")

Scores = dict[str, float]


def load(folder: Path) -> list[dict[str, Any]]:
    """The pages of a folder with their bytes as `data`."""
    pages: list[dict[str, Any]] = json.loads((folder / "gold.json").read_text("utf-8"))
    for page in pages:
        data = (folder / page["file"]).read_bytes()
        page["data"] = gzip.decompress(data) if page["file"].endswith(".gz") else data
    return pages


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """The 4-grams of the words of a text; one shorter n-gram for shorter texts."""
    words = _WORD.findall(text)
    return Counter(tuple(words[n : n + 4]) for n in range(max(1, len(words) - 3)) if words)


def overlap(pairs: Sequence[tuple[str, str]]) -> float:
    """F1 of the mean precision and the mean recall of (found, wanted) texts."""
    precisions, recalls = [], []
    for found, wanted in pairs:
        ours, gold = shingles(found), shingles(wanted)
        common = (ours & gold).total()
        precisions.append(common / ours.total() if ours else 0.0)
        recalls.append(common / gold.total() if gold else 1.0)
    precision, recall = statistics.mean(precisions), statistics.mean(recalls)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def score(pages: list[dict[str, Any]], texts: list[str], dates: list[str]) -> Scores:
    """The figures of one extractor; a kind of gold that no page has is left out."""
    both = list(zip(pages, (squeeze(text) for text in texts), strict=True))
    full = [
        (text, squeeze(page["articleBody"]))
        for page, text in both
        if page.get("body_kind", "human, full text") == "human, full text"
    ]
    found: Scores = {
        "f1": overlap(full),
        "f1_start": overlap([(a[:START_CHARS], b[:START_CHARS]) for a, b in full]),
    }
    snippets = [
        (page, text)
        for page, text in both
        if page.get("body_kind", "snippets").endswith("snippets") and page.get("must_not_contain")
    ]
    hits = sum(squeeze(s) in t for page, t in snippets for s in page.get("must_contain") or ())
    wanted = sum(len(page.get("must_contain") or ()) for page, _ in snippets)
    wrong = sum(squeeze(s) in t for page, t in snippets for s in page["must_not_contain"])
    if wanted:
        found["snippets"] = 2 * hits / (hits + wrong + wanted)
    elif snippets:
        found["kept_out"] = 1 - wrong / sum(len(page["must_not_contain"]) for page, _ in snippets)
    dated = [
        (page["date"], date)
        for page, date in zip(pages, dates, strict=True)
        if page.get("date") and page.get("date_kind", "human") == "human"
    ]
    if dated and any(dates):
        found["dates_right"] = sum(gold == date for gold, date in dated) / len(dated)
        found["dates_not_wrong"] = sum(date in ("", gold) for gold, date in dated) / len(dated)
    return found


def squeeze(text: str) -> str:
    """`text` with its white space collapsed."""
    return " ".join(text.split())


def request(data: bytes) -> ExtractRequest:
    """The request for the whole text of a page."""
    return ExtractRequest(data, Kind.HTML, "", ALL_CHARS, TODAY)


def timed(pages: list[dict[str, Any]], extract: Callable[[bytes], Any]) -> tuple[list[Any], Scores]:
    """The answers for all pages, and the CPU milliseconds per page (lower of two passes)."""
    answers: list[Any] = []
    best = [float("inf")] * len(pages)
    for _ in range(2):
        answers.clear()
        for number, page in enumerate(pages):
            started = time.process_time()
            answers.append(extract(page["data"]))
            best[number] = min(best[number], (time.process_time() - started) * 1000)
    best.sort()
    return answers, {
        "ms_median": statistics.median(best),
        "ms_p95": best[int(len(best) * 0.95)],
        "pages_per_s": 1000 * len(best) / sum(best),
    }


def ours(pages: list[dict[str, Any]]) -> tuple[Scores, Scores]:
    """The figures and times of the extraction as it is used."""
    answers: list[Extracted]
    answers, times = timed(pages, lambda data: extract_page(request(data)))
    found = score(pages, [page.text for page in answers], [page.published_on for page in answers])
    return found, times


def peers() -> dict[str, Callable[[bytes], str]]:
    """The extractors of the chain by themselves, and others that happen to be installed."""
    import trafilatura
    from selectolax.lexbor import LexborHTMLParser

    from citeflow.fetch.first_pass import by_resiliparse, read_frame
    from citeflow.fetch.paragraphs import main_paragraphs

    def text(data: bytes) -> str:
        return decode(data).text.replace("\0", "")

    found: dict[str, Callable[[bytes], str]] = {
        "frame": lambda data: read_frame(LexborHTMLParser(text(data))).text,
        "resiliparse": lambda data: by_resiliparse(text(data)),
        "justext": lambda data: main_paragraphs(text(data)),
        "trafilatura fast": lambda data: (
            trafilatura.extract(text(data), include_comments=False, fast=True) or ""
        ),
        "trafilatura": lambda data: trafilatura.extract(text(data), include_comments=False) or "",
    }
    try:
        import readability  # type: ignore[import-not-found,unused-ignore]
        from lxml import html
    except ImportError:
        return found
    found["readability"] = lambda data: str(
        html.fromstring(readability.Document(text(data)).summary()).text_content()
    )
    return found


def throughput(pages: list[dict[str, Any]], *, rounds: int = 5) -> str:
    """Pages per second of wall-clock time in line, in one worker and in one for each core.

    Taken in turns, the best of some rounds of each, so that what else the machine does is shared by
    all three; and the CPU milliseconds per page of the workers and of the program that feeds them.
    """
    import asyncio

    import psutil

    payloads = [msgspec.msgpack.encode(request(page["data"])) for page in pages]
    cores = os.cpu_count() or 1

    def in_line() -> float:
        started = time.perf_counter()
        for payload in payloads:
            run(payload)
        return len(payloads) / (time.perf_counter() - started)

    async def pooled(pool: WorkerPool, copies: int) -> float:
        started = time.perf_counter()
        await asyncio.gather(*(pool.run(p, timeout=60) for p in payloads * copies))
        return copies * len(payloads) / (time.perf_counter() - started)

    def workers_seconds() -> float:
        me = psutil.Process()
        ended = me.cpu_times().children_user + me.cpu_times().children_system
        return ended + sum(sum(each.cpu_times()[:2]) for each in me.children())

    async def measure() -> str:
        pools = {size: WorkerPool("citeflow.fetch.extract:run", size=size) for size in (1, cores)}
        for size, pool in pools.items():
            pool.warm()
            await pooled(pool, 2 * size)
        best = dict.fromkeys((0, *pools), 0.0)
        fed, feeding, worked = 0, 0.0, 0.0
        for _ in range(rounds):
            best[0] = max(best[0], in_line())
            for size, pool in pools.items():
                before = time.process_time(), workers_seconds()
                best[size] = max(best[size], await pooled(pool, size))
                feeding += time.process_time() - before[0]
                worked += workers_seconds() - before[1]
                fed += size * len(payloads)
        for pool in pools.values():
            pool.close()
        return (
            f"in line {best[0]:.0f} pages/s, one worker {best[1]:.0f}, {cores} workers "
            f"{best[cores]:.0f} ({best[cores] / best[0]:.2f}x in line); CPU ms per page: worker "
            f"{1000 * worked / fed:.1f}, pool {1000 * feeding / fed:.2f}"
        )

    return asyncio.run(measure())


def shown(name: str, *parts: Scores) -> str:
    """One line of the report."""
    figures = " ".join(f"{key}={value:.4g}" for part in parts for key, value in part.items())
    return f"{name:18} {figures}"


def main() -> int:
    """Run the benchmark; 1 when a floor does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, default=CAPTURED, help="captured pages with gold")
    parser.add_argument("--check", action="store_true", help="fail below the pinned floors")
    parser.add_argument("--pin", action="store_true", help="write the floors")
    parser.add_argument("--allow-regression", action="store_true", help="let --pin lower a floor")
    parser.add_argument("--peers", action="store_true", help="score other extractors too")
    parser.add_argument("--pool", action="store_true", help="measure the worker pool too")
    arguments = parser.parse_args()
    floors: dict[str, Scores] = json.loads(FLOORS.read_text("utf-8")) if FLOORS.exists() else {}
    gc.collect()
    gc.freeze()
    below = []
    for name, folder in (("written", HERE / "pages"), ("captured", arguments.pages)):
        if not (folder / "gold.json").exists():
            print(f"{name}: no pages in {folder}, skipped")
            continue
        pages = load(folder)
        figures, times = ours(pages)
        print(shown(name, figures, times))
        if arguments.peers:
            for peer, extract in peers().items():
                texts, peer_times = timed(pages, extract)
                print(shown(f"  {peer}", score(pages, texts, [""] * len(pages)), peer_times))
        if arguments.pool and name == "captured":
            print(f"  pool: {throughput(pages)}")
        for key, value in figures.items():
            floor = floors.get(name, {}).get(key, 0.0)
            if value < floor - TOLERANCE:
                below.append(f"{name} {key}: {value:.4f} is below the floor {floor:.4f}")
        if arguments.pin:
            old = floors.get(name, {})
            floors[name] = {key: round(value, 4) for key, value in figures.items()}
            if not arguments.allow_regression:
                floors[name] = {k: max(v, old.get(k, 0.0)) for k, v in floors[name].items()}
    print(*below, sep="\n", file=sys.stderr)
    if arguments.pin:
        FLOORS.write_text(json.dumps(floors, indent=2) + "\n", encoding="utf-8")
    return 1 if below and (arguments.check or arguments.pin) else 0


if __name__ == "__main__":
    sys.exit(main())
