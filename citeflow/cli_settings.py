"""`citeflow settings`: look at settings, and change those that are kept in PostgreSQL."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from citeflow.errors import SettingsError
from citeflow.settings import REGISTRY, Setting, SiteConfig, parse_value

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["add_settings", "run_settings"]

_EXAMPLE = """\
actions:
  list [TEXT]      every setting, or those whose key contains TEXT (the default action)
  get KEY          the value in force
  set KEY VALUE    store a value in the database, after a look at whether it can be used
  unset KEY        remove it from the database
  explain KEY      meaning, bounds, and every place that sets it
  migrate          rewrite stored lists that equal an old default; --dry-run only tells

set, unset and migrate need CITEFLOW_DATABASE_URL and the table of ops/sql/app_settings.sql.

exit status: 0 done, 1 nothing found, 2 not a setting, not a value, or no database

example:
  citeflow settings rank
  citeflow settings set research_min_snippet_words 12
"""
_URL = "CITEFLOW_DATABASE_URL"
_MASKED = "(set)"
_NOT_FOUND, _UNUSABLE = 1, 2


def add_settings(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "settings",
        help="list, explain and change the settings",
        description="Look at settings, and change those kept in PostgreSQL.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", metavar="ACTION", nargs="*", help="see below; default: list")
    parser.add_argument("--json", action="store_true", help="list, get: print JSON")
    parser.add_argument("--dry-run", action="store_true", help="migrate: change nothing")


def run_settings(args: argparse.Namespace) -> int:
    """Carry out the command; returns the exit status."""
    action, *rest = args.words or ["list"]
    if action not in _ACTIONS:
        action, rest = "list", args.words  # `citeflow settings rank`
    run, fewest, most = _ACTIONS[action]
    if not fewest <= len(rest) <= most:
        return _refuse(f"`settings {action}` takes {fewest or 'at most 1'} arguments")
    try:
        return run(rest, args)
    except SettingsError as exc:
        return _refuse(str(exc))


def _list(words: Sequence[str], args: argparse.Namespace) -> int:
    config = _config()
    text = words[0].lower() if words else ""
    rows = [_row(config, key) for key in sorted(REGISTRY) if text in key]
    if args.json:
        _print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
    else:
        for row in rows:
            default = orjson.dumps(row["default"]).decode()
            _print(f"{row['key']}  ({row['type']}, default {default})")
            if row["problem"]:
                _print(
                    f"    the {row['source']} holds what cannot be read: the default is in force"
                )
            elif row["source"] != "default":
                _print(f"    now {orjson.dumps(row['value']).decode()}, from the {row['source']}")
            _print(f"    {row['doc']}")
    return 0 if rows else _NOT_FOUND


def _get(words: Sequence[str], args: argparse.Namespace) -> int:
    setting = _setting(words[0])
    row = _row(_config(), setting.key)
    _print(orjson.dumps(row).decode() if args.json else _shown(row["value"]))
    return 0


def _set(words: Sequence[str], args: argparse.Namespace) -> int:
    from citeflow.settings_store import write_setting

    key, value = words
    if not value.strip():
        return _refuse("a blank value counts as unset: use `settings unset`")
    _database(lambda url: write_setting(url, key, value))
    secret = key in REGISTRY and REGISTRY[key].secret
    _note(f"{key} is {_MASKED if secret else value} in the database")
    return 0


def _unset(words: Sequence[str], args: argparse.Namespace) -> int:
    from citeflow.settings_store import write_setting

    _database(lambda url: write_setting(url, words[0], None))
    _note(f"{words[0]} is not set in the database")
    return 0


def _explain(words: Sequence[str], args: argparse.Namespace) -> int:
    setting = _setting(words[0])
    config = _config()
    row = _row(config, setting.key)
    _print(f"{setting.key}: {setting.doc}")
    _print(f"type         {setting.type_name}")
    if setting.minimum is not None or setting.maximum is not None:
        low, high = (
            "" if end is None else f"{end:.12g}" for end in (setting.minimum, setting.maximum)
        )
        _print(f"bounds       {low} to {high}")
    _print(f"in force     {_shown(row['value'])} (from: {row['source_in_force']})")
    for raw, source in config.layers(setting.key):
        problem = _problem(setting, raw)
        shown = _MASKED if setting.secret else raw
        _print(f"{source:12} {shown}{f'  cannot be read: {problem}' if problem else ''}")
    _print(f"default      {_shown(setting.default)}")
    _print(f"environment  {setting.env_name}")
    return 0


def _migrate(words: Sequence[str], args: argparse.Namespace) -> int:
    from citeflow.settings_store import migrate_lists

    keys = _database(lambda url: migrate_lists(url, dry_run=args.dry_run))
    for key in keys:
        _print(key)
    _note(f"{len(keys)} lists {'would be' if args.dry_run else 'were'} rewritten")
    return 0


_Action = Callable[["Sequence[str]", argparse.Namespace], int]
_ACTIONS: Mapping[str, tuple[_Action, int, int]] = {
    "list": (_list, 0, 1),
    "get": (_get, 1, 1),
    "set": (_set, 2, 2),
    "unset": (_unset, 1, 1),
    "explain": (_explain, 1, 1),
    "migrate": (_migrate, 0, 0),
}


def _config() -> SiteConfig:
    """The settings as a program with this environment sees them."""
    config = SiteConfig()
    url = os.environ.get(_URL, "").strip()
    if url:
        from citeflow.settings_store import read_settings

        try:
            config.reload_database(asyncio.run(read_settings(url)))
        except SettingsError as exc:
            _note(f"citeflow: without the database: {exc}")
    return config


def _database(work: Callable[[str], Awaitable[Any]]) -> Any:
    url = os.environ.get(_URL, "").strip()
    if not url:
        raise SettingsError(f"{_URL} is not set: settings that can be changed live in PostgreSQL")

    async def run() -> Any:
        return await work(url)

    return asyncio.run(run())


def _setting(key: str) -> Setting:
    if key not in REGISTRY:
        raise SettingsError(f"{key!r} is no setting; `citeflow settings list` has them all")
    return REGISTRY[key]


def _row(config: SiteConfig, key: str) -> dict[str, Any]:
    setting = REGISTRY[key]
    found = config.raw(key)
    problem = _problem(setting, found[0]) if found else ""
    return {
        "key": key,
        "type": setting.type_name,
        "default": setting.default,
        "value": _MASKED if setting.secret and found else config.value(key),
        "source": found[1] if found else "default",
        "source_in_force": found[1] if found and not problem else "default",
        "problem": _MASKED if setting.secret and problem else problem,
        "environment": setting.env_name,
        "doc": setting.doc,
    }


def _problem(setting: Setting, raw: str) -> str:
    try:
        parse_value(setting, raw)
    except SettingsError as exc:
        return str(exc)
    return ""


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse(message: str) -> int:
    _note(f"citeflow: {message}")
    return _UNUSABLE


def _note(message: str) -> None:
    print(message, file=sys.stderr)  # noqa: T201 - the command line's voice


def _print(text: str) -> None:
    print(text)  # noqa: T201 - the command line's voice
