"""Settings in a real PostgreSQL: followed, validated, and survived."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from citeflow import cli
from citeflow.errors import SettingsError
from citeflow.findings import collect_findings
from citeflow.settings import REGISTRY, SiteConfig
from citeflow.settings_store import (
    OLD_DEFAULTS,
    SettingsStore,
    migrate_lists,
    read_settings,
    write_setting,
)
from tests.support.postgres import local_postgres

SQL = (Path(__file__).parents[2] / "ops/sql/app_settings.sql").read_text()
KEY = "research_min_snippet_words"


@pytest.fixture
async def settings_url(database_url: str) -> str:
    """A database with the table."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(SQL)
    await connection.execute(SQL)  # as the file promises
    await connection.close()
    return database_url


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(0.02)


async def test_a_change_is_seen_at_the_next_use(settings_url: str) -> None:
    """Set, changed, unset: announced, long before the next look at the table."""
    config = SiteConfig({"settings_poll_seconds": 3600}, environ={f"CITEFLOW_{KEY.upper()}": "7"})
    async with SettingsStore(settings_url, config):
        assert config.get_int(KEY) == 7
        await write_setting(settings_url, KEY, "50")
        await until(lambda: config.get_int(KEY) == 50)
        assert config.raw(KEY) == ("50", "database")
        assert config.with_values({}).get_int(KEY) == 50
        await write_setting(settings_url, KEY, None)
        await until(lambda: config.get_int(KEY) == 7)


async def test_without_announcements_the_table_is_looked_at(settings_url: str) -> None:
    """No trigger, as if a pooler swallowed it: at the next interval."""
    connection = await asyncpg.connect(settings_url)
    await connection.execute("DROP TRIGGER citeflow_settings_changed ON app_settings")
    await connection.close()
    config = SiteConfig({"settings_poll_seconds": 1}, environ={})
    async with SettingsStore(settings_url, config):
        await write_setting(settings_url, KEY, "50")
        await until(lambda: config.get_int(KEY) == 50)


async def test_the_last_known_values_outlive_the_database() -> None:
    """Stopped and started: values stay, one finding for the outage, then what is new is seen."""
    with local_postgres() as server, collect_findings() as findings:
        connection = await asyncpg.connect(server.url)
        await connection.execute(SQL)
        await connection.execute("INSERT INTO app_settings (key, value) VALUES ($1, '50')", KEY)
        await connection.close()
        config = SiteConfig({"settings_poll_seconds": 1}, environ={})
        async with SettingsStore(server.url, config):
            assert config.get_int(KEY) == 50
            await asyncio.to_thread(server.stop)
            await until(lambda: len(findings) == 1)
            await asyncio.sleep(1.5)  # several tries to connect
            assert config.get_int(KEY) == 50
            await asyncio.to_thread(server.start)
            await write_setting(server.url, KEY, "51")
            await until(lambda: config.get_int(KEY) == 51, seconds=40)
        assert [finding.kind for finding in findings] == ["settings_database_down"]


async def test_a_missing_table_or_database_costs_nothing_but_a_finding(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No table, nobody there: defaults, a finding, and no password in any word of it."""
    config = SiteConfig(environ={})
    with collect_findings() as findings, caplog.at_level(logging.DEBUG):
        for url in (database_url, "postgresql://u:s3cret@127.0.0.1:1/x", "postgresql://[s3cret"):
            async with SettingsStore(url, config):
                await until(lambda: len(findings) > 0)
            assert findings.pop().kind == "settings_database_down"
            assert config.get_int(KEY) == REGISTRY[KEY].default
            with pytest.raises(SettingsError) as caught:
                await read_settings(url)
            assert "s3cret" not in str(caught.value)
    assert "s3cret" not in caplog.text


async def test_what_cannot_be_used_falls_back(
    settings_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A typo switches no gate off, a number is moved into bounds, an unknown key is told once."""
    rows = {
        "research_require_fetched_source_for_citation": "ture",
        "web_research_max_concurrent": "0",
        "research_search_rank_weight": "nan",
        "research_recency_weight": "-3",
        "no_such_setting": "1",
        "findings.somebody_elses.delivery": "log_only",
        "known_references_json": "x" * 200_000,
    }
    connection = await asyncpg.connect(settings_url)
    for key, value in rows.items():
        await connection.execute("INSERT INTO app_settings VALUES ($1, $2)", key, value)
    await connection.execute("INSERT INTO app_settings VALUES ('web_research_backends', NULL)")
    config = SiteConfig(environ={})
    with caplog.at_level(logging.WARNING):
        async with SettingsStore(settings_url, config):
            await connection.execute("UPDATE app_settings SET updated_at = now()")
            await connection.execute("INSERT INTO app_settings VALUES ($1, '9')", KEY)
            await until(lambda: config.get_int(KEY) == 9)
            for _ in range(3):
                assert config.get_bool("research_require_fetched_source_for_citation") is True
                assert config.get_int("web_research_max_concurrent") == 1
                assert config.get_float("research_search_rank_weight") == 0.4
                assert config.get_float("research_recency_weight") == 0.0
                assert config.get_str("known_references_json") == ""
    await connection.close()
    told = [record.getMessage() for record in caplog.records]
    for word in ("ture", "no_such_setting", "'nan'"):
        assert sum(word in line for line in told) == 1, word
    assert not any("somebody_elses" in line for line in told)


async def test_only_lists_that_equal_an_old_default_are_rewritten(settings_url: str) -> None:
    """In any order and spelling; one entry more or less, and it is somebody's own."""
    tier1, tier2 = OLD_DEFAULTS
    await write_setting(settings_url, tier1, "org, edu,GOV, ac.uk")
    await write_setting(settings_url, tier2, ",".join([*OLD_DEFAULTS[tier2], "mine.example"]))
    assert await migrate_lists(settings_url, dry_run=True) == [tier1]
    assert (await read_settings(settings_url))[tier1] == "org, edu,GOV, ac.uk"
    assert await migrate_lists(settings_url) == [tier1]
    assert await migrate_lists(settings_url) == []
    values = await read_settings(settings_url)
    assert values[tier1] == REGISTRY[tier1].default
    assert values[tier2].endswith("mine.example")


@pytest.fixture
def run(
    settings_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """`citeflow settings ...` in this process: exit status, output, errors."""
    monkeypatch.setenv("CITEFLOW_DATABASE_URL", settings_url)

    def run(*words: str) -> tuple[int, str, str]:
        status = cli.main(["settings", *words])
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("no_such_setting", "1", "no setting"),
        (KEY, "many", "many"),
        (KEY, "-1", "expected"),
        ("research_recency_weight", "nan", "finite"),
        ("research_require_fetched_source_for_citation", "ture", "expected one of"),
        ("findings.event_rejected.delivery", "pigeon", "discord, log_only, route"),
        (KEY, " ", "unset"),
    ],
)
def test_set_refuses_what_cannot_be_used(
    run: Callable[..., tuple[int, str, str]], key: str, value: str, said: str
) -> None:
    """Nothing is written, and the reason names what would do."""
    status, _, error = run("set", key, value)
    assert status == 2
    assert said in error
    assert run("get", KEY)[1].strip() == str(REGISTRY[KEY].default)


def test_set_get_explain_unset(run: Callable[..., tuple[int, str, str]]) -> None:
    """Each layer is named; secrets are never printed; the list still takes a word."""
    assert run("set", KEY, "12")[0] == 0
    assert run("get", KEY)[1].strip() == "12"
    explained = run("explain", KEY)[1]
    assert "in force     12 (from: database)" in explained
    assert f"default      {REGISTRY[KEY].default}" in explained
    assert run("set", "discord_webhook_url", "https://discord.example/s3cret")[0] == 0
    for words in (("list",), ("list", "--json"), ("explain", "discord_webhook_url"), ("discord",)):
        status, output, error = run(*words)
        assert status == 0
        assert "s3cret" not in output + error
    assert run("set", "findings.somebody_elses.cooldown_minutes", "5")[0] == 0
    assert run("unset", KEY)[0] == 0
    assert "from the database" not in run("min_snippet_words")[1]
    assert run("get")[0] == 2
    assert run("migrate", "--dry-run")[0] == 0


def test_without_a_database_set_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2 and the name of the variable; an unreadable value is told as such."""
    monkeypatch.delenv("CITEFLOW_DATABASE_URL", raising=False)
    assert cli.main(["settings", "set", KEY, "5"]) == 2
    assert "CITEFLOW_DATABASE_URL" in capsys.readouterr().err
    monkeypatch.setenv(f"CITEFLOW_{KEY.upper()}", "many")
    assert cli.main(["settings", "list", KEY]) == 0
    assert "the environment holds what cannot be read" in capsys.readouterr().out
