"""The generated files are what docs/generate.py makes of the code today."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from citeflow.settings import REGISTRY

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """The names of docs/generate.py."""
    return runpy.run_path(str(ROOT / "docs/generate.py"))


def test_the_generated_files_are_current() -> None:
    """`python docs/generate.py --check` finds nothing to write."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_stale_file_is_found_and_written(script: dict[str, Any], tmp_path: Path) -> None:
    """A check names what differs and leaves it; a run writes it; the next check is content."""
    page = tmp_path / "docs/settings.md"
    page.parent.mkdir()
    page.write_text("old\n")
    assert "docs/settings.md" in script["generate"](tmp_path, check=True)
    assert page.read_text() == "old\n"
    script["generate"](tmp_path, check=False)
    assert script["generate"](tmp_path, check=True) == []


def test_every_setting_has_its_row(script: dict[str, Any]) -> None:
    """One row per setting, five cells each, with its type and meaning."""
    page = script["settings_page"]()["docs/settings.md"]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(REGISTRY)
    for row, setting in zip(rows, REGISTRY.values(), strict=True):
        assert row.replace("\\|", "").count("|") == 6
        assert f"| {setting.type_name} |" in row
