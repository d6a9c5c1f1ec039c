"""ops/venv.sh: what it installs, and when it does nothing.

A stand-in interpreter answers `-m venv` and `-m pip` and notes the installations; everything else
goes to the interpreter that runs the tests.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "ops/venv.sh"

STAND_IN = """#!/bin/sh
case "$*" in
    "-m venv "*) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    "-m pip install "*) for last; do :; done; echo "$last" >>installed; exit "${{PIP_EXIT:-0}}" ;;
    "-m pip "*) ;;
    *) exec {python} "$@" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose path has a space, with the stand-in as `python`."""
    root = tmp_path / "a checkout"
    (root / "ops").mkdir(parents=True)
    shutil.copy(SCRIPT, root / "ops")
    (root / "pyproject.toml").write_text("one\n")
    stand_in = root / "python"
    stand_in.write_text(STAND_IN.format(python=shlex.quote(sys.executable)))
    stand_in.chmod(0o755)
    return root


def set_up(checkout: Path, level: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the script as make does."""
    return subprocess.run(
        ["ops/venv.sh", level],
        cwd=checkout,
        env={**os.environ, "PYTHON": str(checkout / "python"), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def installed(checkout: Path) -> list[str]:
    """What pip was asked to install, in order."""
    log = checkout / "installed"
    return log.read_text().splitlines() if log.exists() else []


def test_the_second_call_installs_nothing(checkout: Path) -> None:
    """One installation per level; nothing on stdout, ever."""
    calls = [set_up(checkout, "dev") for _ in range(2)]
    assert [call.returncode for call in calls] == [0, 0]
    assert [call.stdout for call in calls] == ["", ""]
    assert installed(checkout) == [".[dev]"]


def test_run_then_dev_upgrades_and_dev_covers_run(checkout: Path) -> None:
    """`make test` after `make run` adds the rest; `make run` after that adds nothing."""
    for level in ("run", "dev", "run", "dev"):
        assert set_up(checkout, level).returncode == 0
    assert installed(checkout) == [".[stream,embedded]", ".[dev]"]


def test_a_changed_pyproject_installs_again(checkout: Path) -> None:
    """The stamp belongs to the text of pyproject.toml, not to its date."""
    set_up(checkout, "dev")
    (checkout / "pyproject.toml").touch()
    set_up(checkout, "dev")
    assert installed(checkout) == [".[dev]"]
    (checkout / "pyproject.toml").write_text("two\n")
    set_up(checkout, "dev")
    assert installed(checkout) == [".[dev]", ".[dev]"]


def test_a_killed_installation_starts_afresh(checkout: Path) -> None:
    """After a kill the environment is not trusted: it is built again from nothing."""
    assert set_up(checkout, "run", PIP_EXIT="137").returncode != 0
    (checkout / ".venv/half-written").touch()
    assert set_up(checkout, "run").returncode == 0
    assert not (checkout / ".venv/half-written").exists()
    assert installed(checkout) == [".[stream,embedded]"] * 2


def test_a_failed_upgrade_leaves_what_worked(checkout: Path) -> None:
    """`make test` without network fails and says so; `make run` goes on working."""
    set_up(checkout, "run")
    failed = set_up(checkout, "dev", PIP_EXIT="1")
    assert failed.returncode != 0
    assert "the installation failed" in failed.stderr
    assert set_up(checkout, "run").returncode == 0
    assert installed(checkout) == [".[stream,embedded]", ".[dev]"]


def test_two_set_ups_do_not_meet(checkout: Path) -> None:
    """While one set-up runs a second waits for it, then finds the work done."""
    set_up(checkout, "run")
    stamp = checkout / ".venv/citeflow-run"
    (checkout / ".venv/citeflow-dev").write_text(stamp.read_text())
    (checkout / ".venv/citeflow-installing").touch()
    with (checkout / "ops/venv.sh").open() as held, ThreadPoolExecutor() as threads:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = threads.submit(set_up, checkout, "dev")
        with pytest.raises(TimeoutError):
            second.result(timeout=1)
        (checkout / ".venv/citeflow-installing").unlink()
        fcntl.flock(held, fcntl.LOCK_UN)
        assert "Waiting for another set-up" in second.result().stderr
    assert installed(checkout) == [".[stream,embedded]"]


def test_an_unsupported_interpreter_is_named(checkout: Path) -> None:
    """PYTHON=something that is no Python gives an error that says so."""
    refused = set_up(checkout, "run", PYTHON="/bin/false")
    assert refused.returncode != 0
    assert "PYTHON=/bin/false is not a working Python 3.11, 3.12 or 3.13" in refused.stderr


def test_no_interpreter_at_all_is_said(checkout: Path) -> None:
    """Without any suitable python3 on PATH the error tells what to do."""
    tools = checkout / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "cat", "cksum"):
        (tools / name).symlink_to(str(shutil.which(name)))
    refused = set_up(checkout, "run", PYTHON="", PATH=str(tools))
    assert refused.returncode != 0
    assert "no Python 3.11, 3.12 or 3.13 found on PATH" in refused.stderr
