"""Every finding that the code emits is in the registry, with the severity that it says."""

from __future__ import annotations

import ast
from pathlib import Path

from citeflow.finding_kinds import FINDING_KINDS

ROOT = Path(__file__).parents[3]


def emitted() -> dict[str, set[str]]:
    """The kinds named by a `kind=` beside a `severity=`, with their severities."""
    found: dict[str, set[str]] = {}
    for room in ("citeflow", "agents", "streams"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    given = {word.arg: word.value for word in node.keywords}
                    kind = given.get("kind")
                    if isinstance(kind, ast.Constant) and "severity" in given:
                        name = ast.unparse(given["severity"]).removesuffix(".value")
                        severity = name.strip("'").split(".")[-1].lower()
                        found.setdefault(str(kind.value), set()).add(severity)
    return found


def test_every_kind_is_registered() -> None:
    """An operator can look up whatever is reported."""
    kinds = emitted()
    assert len(kinds) >= 8
    for kind, severities in kinds.items():
        assert severities == {FINDING_KINDS[kind].severity}, kind
