"""Every finding that the code emits is in the registry, with the severity that it says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from citeflow.finding_kinds import FINDING_KINDS

ROOT = Path(__file__).parents[3]
EMITTERS = {"emit_finding", "Finding", "AuditFinding"}
# Where the kind is an argument: a function that reports for several places, and those that pass on
# or sum up what others have emitted.
REPORTERS = {"_report_lost_tier": "info"}
PASSED_ON = {"streams/audit.py", "citeflow/findings.py"}
SUMMED_UP = "state.kind"


def emitted() -> Iterator[tuple[str, str, str]]:
    """File, kind and severity of each finding that the code makes."""
    for room in ("citeflow", "agents", "streams"):
        for path in sorted((ROOT / room).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            tree = ast.parse(path.read_text(encoding="utf-8"))
            constants = {
                ast.unparse(target): node.value
                for node in tree.body
                if isinstance(node, ast.Assign)
                for target in node.targets
            }
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call):
                    continue
                called = ast.unparse(node.func).rpartition(".")[2]
                if called in REPORTERS:
                    yield name, text(node.args[0]), REPORTERS[called]
                if called not in EMITTERS or name in PASSED_ON:
                    continue
                given = {word.arg: word.value for word in node.keywords}
                kind = constants.get(ast.unparse(given["kind"]), given["kind"])
                severity = given.get("severity", ast.Constant("info"))
                if ast.unparse(kind) not in (SUMMED_UP, "kind"):
                    yield name, text(kind), ast.unparse(severity).strip("'").lower()


def text(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant), f"a kind that cannot be read: {ast.unparse(node)}"
    return str(node.value)


def test_every_kind_is_registered() -> None:
    """An operator can look up whatever is reported, and nothing that is not."""
    found = list(emitted())
    assert {kind for _, kind, _ in found} == set(FINDING_KINDS)
    for where, kind, severity in found:
        expected = FINDING_KINDS[kind].severity
        assert severity.removeprefix("severity.").removesuffix(".value") == expected, where


def test_every_kind_says_what_to_do() -> None:
    """Meaning and action are sentences, and the page of findings is a table."""
    for kind in FINDING_KINDS.values():
        for sentence in (kind.meaning, kind.action):
            assert sentence.endswith(".")
            assert "|" not in sentence
