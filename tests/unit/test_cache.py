"""Case 21: the disk cache, entry by entry, and what is no entry."""

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow import cache
from citeflow.settings import SiteConfig

if TYPE_CHECKING:
    from pathlib import Path

KEY = cache.make_key("test", "a")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache turned on, in a directory that does not exist yet."""
    monkeypatch.delenv(cache.NO_CACHE_ENV)
    place = tmp_path / "cache"
    monkeypatch.setenv(cache.CACHE_DIR_ENV, str(place))
    return place


def put(directory: Path, key: str, content: bytes | str) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / f"{key}.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("value", [[1, "a", None], {"b": [{}]}, "", 0, False, [], "日本"])
def test_case_21_a_value_comes_back(directory: Path, value: Any) -> None:
    """What was stored is loaded, from one flat file with a stamp, for its owner alone."""
    assert cache.load(KEY) is None
    assert cache.store(KEY, value)
    assert cache.load(KEY) == value
    (path,) = directory.iterdir()
    assert path.name == f"{KEY}.json"
    entry = json.loads(path.read_text())
    assert entry.keys() == {"stored_at", "value"}
    assert abs(entry["stored_at"] - time.time()) < 60
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_case_21_the_age_decides(directory: Path) -> None:
    """Older than the limit is a miss, and a limit of zero is one at once."""
    put(directory, KEY, json.dumps({"stored_at": time.time() - 100, "value": 1}))
    assert cache.load(KEY, 99) is None
    assert cache.load(KEY, 110) == 1
    assert cache.load(KEY) == 1
    assert cache.load(KEY, 0) is None
    assert cache.store(KEY, 1)
    assert cache.load(KEY, 0) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00",
        b"{",
        b"[1]",
        b'{"value": 1}',
        b'{"stored_at": 1}',
        b'{"stored_at": "1", "value": 1}',
        b'{"stored_at": null, "value": 1}',
        b'{"stored_at": true, "value": 1}',
        b'{"stored_at": NaN, "value": 1}',
        b'{"stored_at": Infinity, "value": 1}',
        b'{"stored_at": 1e999, "value": 1}',
        b'{"stored_at": 99999999999, "value": 1}',
        b'{"stored_at": -1e308, "value": 1}',
        b'{"stored_at": 1, "value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(15),
)
def test_case_21_what_is_no_sound_entry_is_a_miss(directory: Path, content: bytes) -> None:
    """Corrupt, from the future, not a number, nested without end: None, and no exception."""
    put(directory, KEY, content)
    assert cache.load(KEY, 1e12) is None
    assert cache.purge_expired() == 1


def test_case_21_a_large_entry_is_neither_stored_nor_read(directory: Path) -> None:
    """The cap of 2 MiB holds in both directions."""
    assert not cache.store(KEY, "x" * 3 * 1024 * 1024)
    put(directory, KEY, json.dumps({"stored_at": time.time(), "value": "x" * 3 * 1024 * 1024}))
    assert cache.load(KEY) is None


@pytest.mark.parametrize(
    "value", [None, object(), {1: 2}, "\ud800", 2**70, {"a": {1, 2}}], ids=range(6)
)
def test_case_21_what_cannot_be_stored_is_refused(directory: Path, value: object) -> None:
    """What JSON does not hold, and None, which would read as a miss."""
    assert not cache.store(KEY, value)
    assert not directory.exists() or not list(directory.iterdir())


def test_case_21_nesting_is_refused_too(directory: Path) -> None:
    """A value nested without end neither is stored nor raises."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert not cache.store(KEY, deep)
    while deep:  # taken apart by hand: freeing it at once would recurse
        deep = deep[0]


@pytest.mark.parametrize(
    "key", ["", "../../x", "a" * 63, "A" * 64, KEY + "/", f"{KEY}\n", "g" * 64, "\x00" * 64]
)
def test_case_21_a_key_that_is_no_digest_leads_nowhere(directory: Path, key: str) -> None:
    """Nothing is read or written outside the directory, or under another name."""
    (directory.parent / "x.json").write_text(json.dumps({"stored_at": time.time(), "value": 1}))
    assert not cache.store(key, 1)
    assert cache.load(key) is None
    assert not directory.exists()


def test_case_21_links_and_pipes_are_misses(directory: Path) -> None:
    """An entry is a file in the directory, and reading one cannot hang."""
    outside = directory.parent / "outside"
    outside.write_text(json.dumps({"stored_at": time.time(), "value": "secret"}))
    directory.mkdir()
    (directory / f"{KEY}.json").symlink_to(outside)
    assert cache.load(KEY) is None
    other = cache.make_key("pipe")
    os.mkfifo(directory / f"{other}.json")
    assert cache.load(other) is None
    assert cache.purge_expired() == 2
    assert outside.exists()


def test_case_21_a_purge_touches_only_our_own_entries(directory: Path) -> None:
    """Stale and broken entries go, a fresh one and an unrelated package.json stay."""
    fresh, stale, broken = (cache.make_key("purge", i) for i in range(3))
    cache.store(fresh, 1)
    put(directory, stale, json.dumps({"stored_at": time.time() - 90_000, "value": 1}))
    put(directory, broken, "not json")
    others = ["package.json", "README", f"{KEY}.json.bak", "orphan.tmp"]
    for name in others:
        (directory / name).write_text("{}")
    (directory / f"{cache.make_key('directory')}.json").mkdir()
    died, writing = directory / f"{KEY}.abc123.tmp", directory / f"{KEY}.def456.tmp"
    for path in (died, writing):
        path.write_text("half")
    os.utime(died, (time.time() - 7200,) * 2)
    assert cache.purge_expired() == 2
    assert cache.load(fresh) == 1
    assert not died.exists()
    assert writing.exists()
    assert all((directory / name).exists() for name in others)


def test_case_21_the_total_size_is_bounded(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest entries make room for new ones, before the bound is passed."""
    monkeypatch.setenv("CITEFLOW_RESEARCH_CACHE_MAX_BYTES", "20000")
    stored = []
    for number in range(100):
        key = cache.make_key("room", number)
        assert cache.store(key, "x" * 900)
        os.utime(directory / f"{key}.json", (1e9 + number,) * 2)
        stored.append(key)
        assert sum(path.stat().st_size for path in directory.iterdir()) <= 20_000
    kept = [key for key in stored if cache.load(key) is not None]
    assert kept == stored[-len(kept) :]
    assert len(kept) >= 15
    assert not cache.store(KEY, "x" * 30_000)


@pytest.mark.parametrize(
    ("value", "enabled"),
    [("", True), ("0", True), (" FALSE ", True), ("1", False), ("yes", False), ("no", False)],
)
def test_case_21_off_is_off(
    directory: Path, monkeypatch: pytest.MonkeyPatch, value: str, enabled: bool
) -> None:
    """Anything but blank, 0 and false turns the cache off: no read, no write, no purge."""
    monkeypatch.setenv(cache.NO_CACHE_ENV, value)
    assert cache.cache_enabled() is enabled
    assert cache.store(KEY, 1) is enabled
    assert cache.load(KEY) == (1 if enabled else None)
    assert cache.cache_enabled(SiteConfig({"research_no_cache": "1"})) is False


def test_case_21_an_unusable_directory_is_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    """A file in its place, a NUL in its name: nothing is stored and nothing raises."""
    (tmp_path / "file").write_text("")
    config = SiteConfig({"research_cache_dir": str(tmp_path / "file")}, environ={})
    for place in (config, SiteConfig({"research_cache_dir": "/x\x00y"}, environ={})):
        assert not cache.store(KEY, 1, site_config=place)
        assert cache.load(KEY, site_config=place) is None
        assert cache.purge_expired(site_config=place) == 0


def test_case_21_the_default_place_is_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the working directory; `~` of a setting is the user's home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    place = cache.cache_dir(SiteConfig(environ={}))
    assert tmp_path in place.parents
    assert "citeflow" in place.parts
    named = SiteConfig({"research_cache_dir": " ~/c "}, environ={})
    assert cache.cache_dir(named) == tmp_path / "c"


@given(st.lists(st.text(max_size=8) | st.integers() | st.none(), max_size=5))
def test_case_21_a_key_is_a_digest(parts: list[object]) -> None:
    """64 hexadecimal digits, the same each time."""
    key = cache.make_key("kind", *parts)
    assert len(key) == 64
    assert set(key) <= set("0123456789abcdef")
    assert key == cache.make_key("kind", *parts)


def test_case_21_parts_are_kept_apart() -> None:
    """No two lists of parts share a key for where the cuts are, or for their types."""
    keys = [
        cache.make_key(*parts)
        for parts in (
            ("k", "ab", "c"), ("k", "a", "bc"), ("k", "abc"), ("ka", "bc"), ("k", "a\x00b"),
            ("k", "a", "b"), ("k", 1), ("k", "1"), ("k", 1.0), ("k", True), ("k", None), ("k",),
            ("k", "str:1:a"), ("k", "\ud800"),
        )
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
