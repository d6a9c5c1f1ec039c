"""How long the extraction of pages made to break parsers takes, and what memory it needs.

    python benchmarks/hostile.py [--check] [--seconds 1.0]

Each page is extracted in a worker process of its own kind (after one ordinary page, so that
imports do not count), three times; the lowest CPU time is what the page costs. `--check` fails
when one costs more than the bound.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from citeflow.fetch.content_type import Kind
from citeflow.fetch.exchange import ExtractRequest
from tests.support.hostile_pages import HOSTILE

REPEATS = 3


def cost(name: str) -> None:
    """Print seconds of CPU time, MB of memory above an ordinary page, and how it ended."""
    import resource

    from citeflow.fetch.extract import extract_page

    def request(page: str | bytes) -> ExtractRequest:
        data = page.encode("utf-8", "surrogatepass") if isinstance(page, str) else page
        return ExtractRequest(data, Kind.HTML, "", 8000, datetime.date(2026, 1, 1))

    extract_page(request("<article>" + "<p>A page like any other, with words.</p>" * 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wanted = request(HOSTILE[name])
    best = float("inf")
    for _ in range(REPEATS):
        started = time.process_time()
        found = extract_page(wanted)
        best = min(best, time.process_time() - started)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{best:.3f} {grown:.0f} {found.readability.value}:{found.stage or '-'}")


def main() -> int:
    """Run the benchmark; 1 when a page costs too much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", choices=HOSTILE, help="one page, in this process")
    parser.add_argument("--seconds", type=float, default=1.0, help="the bound")
    parser.add_argument("--check", action="store_true", help="fail above the bound")
    arguments = parser.parse_args()
    if arguments.page:
        cost(arguments.page)
        return 0
    over = []
    for name, page in HOSTILE.items():
        done = subprocess.run(
            [sys.executable, __file__, "--page", name], capture_output=True, text=True, check=True
        )
        seconds, grown, ending = done.stdout.split()
        if float(seconds) > arguments.seconds:
            over.append(name)
        mark = " OVER" if name in over else ""
        print(f"{name:32} {len(page) / 1e6:5.1f} MB  {seconds} s  +{grown} MB  {ending}{mark}")
    print(f"{len(HOSTILE)} pages, {len(over)} over {arguments.seconds:g} s")
    return 1 if over and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
