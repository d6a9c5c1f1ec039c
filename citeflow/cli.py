"""The command line: `citeflow context`, `citeflow search`, `citeflow fetch`, `citeflow settings`.

The corpus or JSON goes to standard output, notes go to standard error. Exit status: 0 when
there is a result, 1 when there is nothing to cite, 2 for wrong usage. A search that was answered
ends with 0, also when nothing matched, and with 3 when it was blocked or failed.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import math
import os
import sys
from typing import TYPE_CHECKING

import orjson

from citeflow.cli_settings import add_settings, run_settings
from citeflow.fetch.api import fetch_outcome
from citeflow.findings import Finding, collect_findings
from citeflow.research import ResearchReport, ResearchService
from citeflow.search import SearchOutcome, web_search_outcome
from citeflow.settings import SiteConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["build_parser", "main"]

_MAIN_EXAMPLE = """\
Settings are read from environment variables, CITEFLOW_<KEY>.

example:
  citeflow context "FastAPI streaming"
"""
_CONTEXT_EXAMPLE = """\
example:
  citeflow context "FastAPI streaming" --json | jq '.sources[].url'
"""
_SEARCH_EXAMPLE = """\
example:
  citeflow search "FastAPI streaming" -k 10 | jq -r '.[].url'

exit status: 0 answered (an empty list means that nothing matched), 3 blocked or failed
"""
_FETCH_EXAMPLE = """\
example:
  citeflow fetch https://example.org/page --json-outcome | jq -r .status

exit status: 0 read, 3 not read; the reason goes to stderr
"""

_NOT_ANSWERED = 3
_INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="citeflow",
        description="Topics in, citation-ready corpora out.",
        epilog=_MAIN_EXAMPLE,
        formatter_class=raw,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    context = commands.add_parser(
        "context",
        help="print the corpus for a topic",
        description="Search the web for TOPIC, read what is found, and print the corpus.",
        epilog=_CONTEXT_EXAMPLE,
        formatter_class=raw,
    )
    context.add_argument("topic", metavar="TOPIC", help="what to research")
    context.add_argument(
        "--max-sources", type=_count, metavar="N", help="web sources at most (default: all found)"
    )
    context.add_argument(
        "--snippets-only", action="store_true", help="do not read the pages, use search results"
    )
    context.add_argument(
        "--json", action="store_true", help="print the whole report, with what was dropped and why"
    )
    search = commands.add_parser(
        "search",
        help="print what a web search finds",
        description="Search the web for QUERY; JSON to stdout, how it went to stderr.",
        epilog=_SEARCH_EXAMPLE,
        formatter_class=raw,
    )
    search.add_argument("query", metavar="QUERY", help="what to search for")
    search.add_argument(
        "-k", type=_count, default=5, metavar="N", help="results at most (default: 5)"
    )
    search.add_argument(
        "--timeout-s", type=_seconds, default=8.0, metavar="S", help="seconds in all (default: 8)"
    )
    search.add_argument(
        "--json-outcome",
        action="store_true",
        help="print an object with status, note and provenance too",
    )
    fetch = commands.add_parser(
        "fetch",
        help="print the main text of a page",
        description="Read the page or PDF at URL (https only); JSON to stdout.",
        epilog=_FETCH_EXAMPLE,
        formatter_class=raw,
    )
    fetch.add_argument("url", metavar="URL", help="what to read")
    fetch.add_argument(
        "--max-chars", type=_count, default=4000, metavar="N", help="characters (default: 4000)"
    )
    fetch.add_argument(
        "--max-bytes", type=_count, default=400_000, metavar="N", help="bytes (default: 400000)"
    )
    fetch.add_argument(
        "--timeout-s", type=_seconds, default=8.0, metavar="S", help="seconds in all (default: 8)"
    )
    fetch.add_argument(
        "--json-outcome",
        action="store_true",
        help="print an object with status, title, dates, final URL and so on too",
    )
    add_settings(commands)
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError("a count is not negative")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError("a time is a positive number of seconds")
    return seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    args = build_parser().parse_args(argv)
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="%(levelname)s %(message)s")
    try:
        status = _RUN[args.command](args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has what it wanted (`citeflow settings | head`). What is still
        # buffered goes nowhere, so that the interpreter does not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _context(args: argparse.Namespace) -> int:
    overrides = {"research_extract_web_content": False} if args.snippets_only else {}
    service = ResearchService(site_config=SiteConfig(overrides))
    with collect_findings() as findings:
        report = asyncio.run(service.research(args.topic, max_sources=args.max_sources))
    if args.json:
        _print_json({"topic": args.topic, **dataclasses.asdict(report), "findings": findings})
    elif report.corpus:
        print(report.corpus)  # noqa: T201 - the result of the command
    for note in _notes(report, findings):
        print(note, file=sys.stderr)  # noqa: T201 - notes to the person at the terminal
    return 0 if report.corpus else 1


def _search(args: argparse.Namespace) -> int:
    with collect_findings():  # the provenance says the same
        outcome = web_search_outcome(args.query, args.k, args.timeout_s)
    found = dataclasses.asdict(outcome)
    # ASCII: what strangers wrote must not reach a terminal as control or direction characters.
    print(json.dumps(found if args.json_outcome else found["hits"], indent=2))  # noqa: T201
    for line in _search_notes(outcome):
        print(line, file=sys.stderr)  # noqa: T201 - notes to the person at the terminal
    return 0 if outcome.status.answered else _NOT_ANSWERED


def _fetch(args: argparse.Namespace) -> int:
    outcome = fetch_outcome(args.url, args.max_bytes, args.timeout_s, args.max_chars)
    found = dataclasses.asdict(outcome)
    shown = found if args.json_outcome else {"url": outcome.url, "text": outcome.text}
    # ASCII, as for searches.
    print(json.dumps(shown, indent=2))  # noqa: T201 - the result of the command
    if not outcome.ok:
        reason = f"citeflow: {outcome.status.value}: {_ascii(outcome.detail)}"
        print(reason, file=sys.stderr)  # noqa: T201 - notes to the person at the terminal
    return 0 if outcome.ok else _NOT_ANSWERED


def _search_notes(outcome: SearchOutcome) -> list[str]:
    provenance = outcome.provenance
    lines = [f"note: {_ascii(outcome.note)}"] if outcome.note else []
    facts = {
        "backend": provenance.backend or "none",
        "cached": str(provenance.cached).lower(),
        "query_used": ascii(provenance.query_used),
        "tried": ",".join(provenance.backends_tried) or "none",
        "challenged": str(provenance.challenged).lower(),
        "status": outcome.status.value,
    }
    if outcome.retry_after is not None:
        facts["retry_after"] = f"{outcome.retry_after:g}"
    return [*lines, "provenance: " + " ".join(f"{name}={value}" for name, value in facts.items())]


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _notes(report: ResearchReport, findings: Sequence[Finding]) -> list[str]:
    notes = [
        f"citeflow: {finding.severity.value}: {finding.title}: {finding.body}"
        for finding in findings
    ]
    notes += [
        f"citeflow: dropped ({drop.reason.value}) {drop.url or drop.title}"
        for drop in report.dropped
    ]
    summary = (
        f"citeflow: {report.counts['searched']} found, {len(report.sources)} web sources, "
        f"{len(report.references)} references"
    )
    return [*notes, summary if report.corpus else "citeflow: nothing to cite"]


def _print_json(value: object) -> None:
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


_RUN = {"context": _context, "search": _search, "fetch": _fetch, "settings": run_settings}
