"""A disk cache with an age limit, for what was retrieved from others.

Its directory is flat: one file `<key>.json` per entry with an object of `stored_at` (seconds since
the epoch) and `value`. What is in there came from strangers and may have been tampered with, so
names are SHA-256 digests alone, writes replace whole files, and whatever is not a sound entry is a
miss. A broken cache costs the saved time, never the call.

The environment variables `CITEFLOW_RESEARCH_NO_CACHE` and `CITEFLOW_RESEARCH_CACHE_DIR` are the
settings `research_no_cache` and `research_cache_dir`.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import platformdirs

from citeflow.settings import ENV_PREFIX, SiteConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "CACHE_DIR_ENV",
    "DEFAULT_TTL_S",
    "NO_CACHE_ENV",
    "cache_dir",
    "cache_enabled",
    "load",
    "make_key",
    "purge_expired",
    "store",
]

NO_CACHE_ENV = ENV_PREFIX + "RESEARCH_NO_CACHE"
CACHE_DIR_ENV = ENV_PREFIX + "RESEARCH_CACHE_DIR"
DEFAULT_TTL_S = 21_600
"""Six hours."""

# A search is 5 kB. The cap bounds what a single foreign answer can make a reader hold in memory.
_MAX_ENTRY_BYTES = 2 * 1024 * 1024

_KEY = re.compile(r"[0-9a-f]{64}")
_ENTRY_NAME = re.compile(r"[0-9a-f]{64}\.json")
_TEMPORARY_NAME = re.compile(r"[0-9a-f]{64}\.\w+\.tmp")

# A write takes milliseconds; a temporary file this old was left by a process that died.
_ORPHAN_SECONDS = 3_600.0

# Making room goes below the bound by a tenth, so that it is not done again for the next entry.
_EVICT_TO = 0.9

# The size is known from the last look at the directory and our own writes since. Other processes
# write too, so we look again after this many entries even if we believe that there is room.
_LOOK_AGAIN_AFTER = 200


class _Entry(NamedTuple):
    mtime: float
    size: int
    path: Path


def cache_enabled(site_config: SiteConfig | None = None) -> bool:
    """False when `research_no_cache` is anything but blank, `0` or `false`.

    The environment variable of this process turns the cache off whatever `site_config` holds.
    """
    config = site_config or SiteConfig()
    values = (os.environ.get(NO_CACHE_ENV, ""), config.get_str("research_no_cache"))
    return all(value.strip().lower() in ("", "0", "false") for value in values)


def cache_dir(site_config: SiteConfig | None = None) -> Path:
    """Where entries live: `research_cache_dir`, else `citeflow` in the user's cache directory.

    Not created here; `store` creates it.
    """
    named = (site_config or SiteConfig()).get_str("research_cache_dir").strip()
    if named:
        with suppress(RuntimeError):  # `~` of a user without a home directory
            return Path(named).expanduser()
        return Path(named)
    return platformdirs.user_cache_path("citeflow", appauthor=False) / "research"


def make_key(kind: str, *parts: object) -> str:
    """The key, 64 hexadecimal digits, of what `kind` and all `parts` name together.

    Each part goes in with its type and length, so that neither `("ab", "c")` and `("a", "bc")` nor
    `1` and `"1"` share a key.
    """
    digest = hashlib.sha256()
    for part in (kind, *parts):
        data = str(part).encode("utf-8", "surrogatepass")
        digest.update(f"{type(part).__name__}:{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def load(
    key: str, ttl_s: float = DEFAULT_TTL_S, *, site_config: SiteConfig | None = None
) -> Any | None:
    """The value stored under `key` no longer than `ttl_s` seconds ago, None on a miss.

    A miss is everything else too: a key that is no digest, a file that is unreadable, too large or
    not an entry, a stamp from the future, a cache that is turned off. Never raises.
    """
    try:
        if not cache_enabled(site_config) or not _KEY.fullmatch(key):
            return None
        path = cache_dir(site_config) / f"{key}.json"
        entry = _read(path)
    except (OSError, ValueError):
        return None
    if entry is None or not _live(entry[0], ttl_s):
        return None
    return entry[1]


def store(key: str, value: object, *, site_config: SiteConfig | None = None) -> bool:
    """Store `value` under `key`; True when that was done.

    Not done when the cache is turned off, for a key that is no digest, for None (which would read
    as a miss), for what JSON cannot hold, and for more than 2 MiB or the size of the whole cache.
    Makes room by dropping the oldest entries. Never raises.
    """
    config = site_config or SiteConfig()
    if not cache_enabled(config) or not _KEY.fullmatch(key) or value is None:
        return False
    try:
        data = orjson.dumps({"stored_at": time.time(), "value": value})
    except (TypeError, ValueError, RecursionError):
        return False
    limit = config.get_int("research_cache_max_bytes")
    if len(data) > min(_MAX_ENTRY_BYTES, limit):
        return False
    try:
        directory = cache_dir(config)
        # What people search for is theirs: nobody else on the machine gets to read it.
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _rooms.make(directory, len(data), limit)
        _write(directory, key, data)
    except (OSError, ValueError):
        return False
    return True


def purge_expired(ttl_s: float = DEFAULT_TTL_S, *, site_config: SiteConfig | None = None) -> int:
    """Remove entries that `load` would not return, and leftovers of writers that died.

    Returns the number of entries removed. Files that are not this cache's stay. Never raises.
    """
    removed = 0
    try:
        if not cache_enabled(site_config):
            return 0
        directory = cache_dir(site_config)
        for entry in list(_entries(directory)):
            try:
                found = _read(entry.path)
            except (OSError, ValueError):
                found = None
            if found is None or not _live(found[0], ttl_s):
                with suppress(OSError):
                    entry.path.unlink()
                    removed += 1
        _rooms.forget(directory)
    except (OSError, ValueError):
        return removed
    return removed


def _live(stored_at: float, ttl_s: float) -> bool:
    age = time.time() - stored_at
    return ttl_s > 0 and 0 <= age <= ttl_s


def _read(path: Path) -> tuple[float, Any] | None:
    """Stamp and value of a sound entry, None for what is not one. Raises `OSError`."""
    # Not through a link out of the directory, and not from a pipe that nobody writes to.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_ENTRY_BYTES:
            return None
        data = file.read(_MAX_ENTRY_BYTES + 1)
    try:
        entry = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(entry, dict) or entry.keys() < {"stored_at", "value"}:
        return None
    stamp = entry["stored_at"]
    if isinstance(stamp, bool) or not isinstance(stamp, int | float) or not math.isfinite(stamp):
        return None
    return float(stamp), entry["value"]


def _write(directory: Path, key: str, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f"{key}.", suffix=".tmp", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, directory / f"{key}.json")
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _entries(directory: Path) -> Iterator[_Entry]:
    """Our entries in the directory; removes what dead writers left on the way."""
    try:
        scan = os.scandir(directory)
    except FileNotFoundError:
        return
    with scan:
        for item in scan:
            ours = _ENTRY_NAME.fullmatch(item.name)
            if not (ours or _TEMPORARY_NAME.fullmatch(item.name)):
                continue
            with suppress(OSError):
                found = item.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    continue
                if ours:
                    yield _Entry(found.st_mtime, found.st_size, Path(item.path))
                elif time.time() - found.st_mtime > _ORPHAN_SECONDS:
                    os.unlink(item.path)


class _Rooms:
    """How full each directory is, as far as this process knows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[int, int]] = {}

    def make(self, directory: Path, size: int, limit: int) -> None:
        """Make sure that `size` more bytes fit into `limit`."""
        with self._lock:
            used, writes = self._known.get(directory, (limit, 0))
            if used + size > limit or writes >= _LOOK_AGAIN_AFTER:
                used, writes = self._evict(directory, size, limit), 0
            self._known[directory] = (used + size, writes + 1)

    def forget(self, directory: Path) -> None:
        """Look again before the next entry."""
        with self._lock:
            self._known.pop(directory, None)

    @staticmethod
    def _evict(directory: Path, size: int, limit: int) -> int:
        entries = sorted(_entries(directory))
        used = sum(entry.size for entry in entries)
        if used + size <= limit:
            return used
        for entry in entries:
            if used + size <= limit * _EVICT_TO:
                break
            with suppress(FileNotFoundError):
                entry.path.unlink()
            used -= entry.size
        return used


_rooms = _Rooms()
