"""Extraction is held to its pinned floors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def bench(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "benchmarks/extraction.py", *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip


def test_no_figure_is_below_its_floor() -> None:
    """The pages we wrote always, the captured ones where there are some."""
    done = bench("--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "written" in done.stdout


def test_a_figure_below_its_floor_fails(tmp_path: Path) -> None:
    """The gate closes: with a floor above what can be reached, and for lowering one."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "extraction.py").write_text((ROOT / "benchmarks/extraction.py").read_text())
    (folder / "pages").symlink_to(ROOT / "benchmarks/pages")
    floors = folder / "extraction-floors.json"

    def gate(*arguments: str) -> int:
        return subprocess.run(
            [sys.executable, str(folder / "extraction.py"), "--pages", str(tmp_path), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=170,
            check=False,
        ).returncode  # fmt: skip

    floors.write_text(json.dumps({"written": {"f1": 1.5}}))
    assert (gate("--check"), gate()) == (1, 0)
    assert gate("--pin") == 1
    assert json.loads(floors.read_text())["written"]["f1"] == pytest.approx(1.5)
    gate("--pin", "--allow-regression")
    assert json.loads(floors.read_text())["written"]["f1"] <= 1
    assert gate("--check") == 0
