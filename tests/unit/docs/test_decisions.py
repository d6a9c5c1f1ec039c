"""docs/decisions.md names every dependency."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]


def test_every_dependency_has_its_paragraph() -> None:
    """What pyproject.toml asks for, and nothing else, is set in bold in docs/decisions.md."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    declared = [*project["dependencies"], *pyproject["build-system"]["requires"]]
    for extra in project["optional-dependencies"].values():
        declared += extra
    names = {Requirement(text).name for text in declared} - {"citeflow"}
    text = (ROOT / "docs/decisions.md").read_text()
    assert set(re.findall(r"\*\*([\w-]+)\*\*", text)) == names
