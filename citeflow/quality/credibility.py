"""How much a host's name alone says for a source.

Three levels: 0.95 for a host under a tier-1 entry (institutions whose names are not for sale),
0.85 under a tier-2 entry (curated publications and documentation), 0.65 for every other host.
The numbers are those of the system citeflow reimplements. A top-level domain open to everybody
(`org`) is no evidence, so nothing is below 0.65 except what has no host at all (0.5).

Two decisions the lists alone do not settle:

* A one-label tier-1 entry also stands for that label under a country code, because `gov.uk`,
  `gov.au` and `edu.au` are assigned like `gov` and `edu` are: `gov` covers `nhs.gov.uk`. Other
  academic zones (`ac.jp`) are added by the operator, as `ac.uk` is in the default list.
* Personal pages on a tier-1 host speak for their author, not for the institution, and score as
  any other host: a path that starts with `/~`, or a host whose first label announces them
  (`people.`, `sites.`, `users.` and so on), unless the operator listed that very host.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from citeflow.quality.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NEUTRAL", "NO_HOST", "TIER_1", "TIER_2", "domain_credibility"]

TIER_1 = 0.95
TIER_2 = 0.85
NEUTRAL = 0.65
NO_HOST = 0.5

_PERSONAL_LABELS = frozenset(
    {"people", "sites", "users", "homepages", "homes", "personal", "students", "student"}
)
_COUNTRY_CODE_LENGTH = 2


def _clean(entry: str) -> str:
    return entry.strip().lower().removeprefix("*").strip(".").removeprefix("www.")


@functools.lru_cache(maxsize=64)
def _entries(raw: tuple[str, ...]) -> dict[str, None]:
    # Cleaned once per list, not once per source; a dict keeps the operator's order.
    return dict.fromkeys(entry for each in raw if (entry := _clean(each)))


def _suffixes(host: str) -> list[str]:
    """The host and its parents, the longest first."""
    labels = host.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def _matches_national(host: str, entry: str) -> bool:
    if not entry or "." in entry:
        return False
    labels = host.split(".")
    return (
        len(labels) >= _COUNTRY_CODE_LENGTH
        and labels[-2] == entry
        and len(labels[-1]) == _COUNTRY_CODE_LENGTH
    )


def _is_personal(url: str, host: str, entry: str) -> bool:
    if host == entry:
        return False
    try:
        path = unquote(urlsplit(url.strip()).path)
    except ValueError:
        path = ""
    return path.startswith("/~") or host.split(".")[0] in _PERSONAL_LABELS


def domain_credibility(url: str, tier1: Sequence[str], tier2: Sequence[str]) -> float:
    """Score the host of `url` against two lists of hosts or host suffixes, the first one first."""
    host = host_of(url)
    if not host:
        return NO_HOST
    suffixes = _suffixes(host)
    for entry in _entries(tuple(tier1)):
        if entry in suffixes or _matches_national(host, entry):
            return NEUTRAL if _is_personal(url, host, entry) else TIER_1
    listed = _entries(tuple(tier2))
    return TIER_2 if any(suffix in listed for suffix in suffixes) else NEUTRAL
