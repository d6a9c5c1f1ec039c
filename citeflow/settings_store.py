"""Settings in PostgreSQL: the table `app_settings`, followed while a program runs.

A change takes effect on the next use of a setting, in every process that follows the table. It is
announced by NOTIFY (the trigger is in `ops/sql/app_settings.sql`), and looked for at intervals
where announcements do not come through, as behind a pooler. While the database is away the last
known values are in force.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import re
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

import asyncpg

from citeflow.errors import SettingsError
from citeflow.findings import emit_finding
from citeflow.settings import REGISTRY, Setting, SiteConfig, check_value

__all__ = [
    "CHANNEL",
    "OLD_DEFAULTS",
    "SettingsStore",
    "emit_outage",
    "migrate_lists",
    "read_settings",
    "write_setting",
]

logger = logging.getLogger(__name__)

CHANNEL = "citeflow_settings"

CONNECT_SECONDS = 5.0
QUERY_SECONDS = 5.0
FIRST_LOAD_SECONDS = 5.0
# Seconds between two tries while the database is away, doubled at each.
FIRST_RETRY, LAST_RETRY = 0.5, 15.0
# What a table may hold at most: anything beyond is not of a person's making.
MAX_ROWS, MAX_VALUE = 10_000, 100_000

_SELECT = """
SELECT key, left(value, $1) AS value
FROM app_settings WHERE value IS NOT NULL ORDER BY key LIMIT $2
"""
_UPSERT = """
INSERT INTO app_settings (key, value, updated_at) VALUES ($1, $2, now())
ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
"""

# What driver and server raise when the database is away, full, or not what it should be.
_FAILURES = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError)


class SettingsStore:
    """Keeps the database's values in a `SiteConfig` current, between entering and leaving.

    Entering waits a few seconds for the first values and goes on without them when they do not
    come. `on_outage` is called once for each outage; by default it emits the finding
    `settings_database_down`. No address or password is in any message.
    """

    def __init__(
        self,
        url: str,
        site_config: SiteConfig,
        *,
        on_outage: Callable[[str], None] | None = None,
    ) -> None:
        self._url = url
        self._site_config = site_config
        self._on_outage = on_outage or emit_outage
        self._loaded = asyncio.Event()
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._down = False

    async def __aenter__(self) -> SettingsStore:
        self._following = asyncio.create_task(self._follow())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOAD_SECONDS):
                await self._loaded.wait()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _follow(self) -> None:
        retry = FIRST_RETRY
        while True:
            try:
                connection = await _connect(self._url)
                try:
                    await connection.add_listener(CHANNEL, self._on_notify)
                    connection.add_termination_listener(self._on_notify)
                    while True:
                        self._changed.clear()
                        self._site_config.reload_database(await _read(connection))
                        self._note_up()
                        retry = FIRST_RETRY
                        await self._wait_for_a_change()
                finally:
                    connection.terminate()
            except _FAILURES as exc:
                self._note_down(type(exc).__name__)
            # Not all workers at once. No secret is made of it.
            await asyncio.sleep(retry * random.uniform(0.5, 1.0))  # noqa: S311
            retry = min(retry * 2, LAST_RETRY)

    async def _wait_for_a_change(self) -> None:
        interval = self._site_config.get_float("settings_poll_seconds")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(interval):
                await self._changed.wait()

    def _on_notify(self, *_: object) -> None:
        self._changed.set()

    def _note_up(self) -> None:
        if self._down:
            logger.warning("settings are read from the database again")
        self._down = False
        self._loaded.set()

    def _note_down(self, reason: str) -> None:
        if self._down:
            return
        self._down = True
        logger.error("settings cannot be read from the database: %s", reason)
        self._on_outage(reason)


def emit_outage(reason: str) -> None:
    """Emit the finding of an outage."""
    emit_finding(
        source="settings",
        kind="settings_database_down",
        severity="warn",
        title="The settings database cannot be read",
        body=f"{reason}; the last known values are in force until it answers again.",
        extra={"reason": reason},
    )


async def read_settings(url: str) -> dict[str, str]:
    """All values of the table. Raises `SettingsError` when it cannot be read."""
    async with _opened(url) as connection:
        return await _read(connection)


async def write_setting(url: str, key: str, value: str | None) -> None:
    """Set a value, or unset it with None.

    Raises `SettingsError` for a key that is no setting, a value that it cannot have, and a
    database that does not take it.
    """
    if value is not None:
        check_value(_registered(key), value)
    async with _opened(url) as connection:
        if value is None:
            await connection.execute("DELETE FROM app_settings WHERE key = $1", key)
        else:
            await connection.execute(_UPSERT, key, value)


OLD_DEFAULTS: Mapping[str, frozenset[str]] = {
    "research_tier1_domains": frozenset({"edu", "gov", "org", "ac.uk"}),
    "research_tier2_domains": frozenset(
        {
            "stackoverflow.com",
            "wikipedia.org",
            "arxiv.org",
            "research.google.com",
            "aws.amazon.com",
            "cloud.google.com",
            "microsoft.com",
            "apple.com",
        }
    ),
}
"""Lists that were defaults once, and that installers have stored as they were."""


async def migrate_lists(url: str, *, dry_run: bool = False) -> list[str]:
    """Rewrite each stored list that equals an old default, as a set, to the default of today.

    A list that somebody changed in any way is left alone. Returns the keys that were rewritten.
    """
    rewritten = []
    async with _opened(url) as connection, connection.transaction():
        values = await _read(connection)
        for key, old in OLD_DEFAULTS.items():
            stored = {part.strip().lower() for part in values.get(key, "").split(",")} - {""}
            if stored == old:
                rewritten.append(key)
                if not dry_run:
                    await connection.execute(_UPSERT, key, str(REGISTRY[key].default))
    return rewritten


def _registered(key: str) -> Setting:
    # Any kind of finding has a policy, also one that is not citeflow's own.
    if match := re.fullmatch(r"findings\.\w+\.(delivery|min_severity|cooldown_minutes)", key):
        known = REGISTRY[f"findings.event_rejected.{match[1]}"]
        return REGISTRY.get(key) or Setting(
            key, known.default, known.doc, known.minimum, known.maximum
        )
    if key not in REGISTRY:
        raise SettingsError(f"{key!r} is no setting; `citeflow settings list` has them all")
    return REGISTRY[key]


@contextlib.asynccontextmanager
async def _opened(url: str) -> Any:
    try:
        connection = await _connect(url)
        try:
            yield connection
        finally:
            connection.terminate()
    except asyncpg.UndefinedTableError as exc:
        raise SettingsError("there is no table app_settings: run ops/sql/app_settings.sql") from exc
    except _FAILURES as exc:
        if isinstance(exc, SettingsError):
            raise
        # Drivers put the address into their messages: the chain ends here.
        raise SettingsError(
            f"the settings database does not answer: {type(exc).__name__}"
        ) from None


async def _connect(url: str) -> Any:
    return await asyncpg.connect(
        url,
        timeout=CONNECT_SECONDS,
        command_timeout=QUERY_SECONDS,
        # Behind a pooler the next statement may meet another server.
        statement_cache_size=0,
    )


async def _read(connection: Any) -> dict[str, str]:
    return dict(_bounded(await connection.fetch(_SELECT, MAX_VALUE + 1, MAX_ROWS)))


def _bounded(rows: Iterable[Any]) -> Iterable[tuple[str, str]]:
    for row in rows:
        if len(row["value"]) > MAX_VALUE:
            logger.warning("the value of %s is left out: too large", row["key"][:100])
        else:
            yield row["key"], row["value"]
