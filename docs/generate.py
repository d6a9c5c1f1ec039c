"""Writes the generated files of this repository: `python docs/generate.py`.

With `--check` nothing is written and the exit status is 1 when a file is not what it should be.
To add a document, write a function that returns {path from the top of the checkout: text} and
list it in GENERATORS.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
# The application (schemas, agents, streams) is not installed; it is imported from the checkout.
sys.path.insert(0, str(ROOT))

from citeflow.finding_kinds import FINDING_KINDS  # noqa: E402
from citeflow.settings import REGISTRY, Setting  # noqa: E402
from schemas.documents import documents  # noqa: E402

# Longer defaults get a section of their own: they would stretch the table beyond reading.
_LONGEST_DEFAULT = 40


def settings_page() -> Mapping[str, str]:
    """docs/settings.md: every setting of the registry, in its order."""
    lines = [
        "# Settings",
        "",
        "Every setting of citeflow. A value is looked up at each use, in this order: the values",
        "the program passed to `SiteConfig`, the environment variable `CITEFLOW_` followed by the",
        "setting's name in capitals, dots as underscores (`CITEFLOW_RESEARCH_MIN_SNIPPET_WORDS`),",
        "the default. A blank",
        "value counts as unset. A value that cannot be read as its type is reported once and the",
        "default is used; a number outside its range is moved to the nearest end. Booleans are",
        "`true`, `1`, `yes`, `on` or `false`, `0`, `no`, `off`.",
        "",
        "This page is generated from the registry by `make docs`.",
        "",
        "| setting | type | default | range | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(setting) for setting in REGISTRY.values()]
    for setting in REGISTRY.values():
        if _is_long(setting):
            parts = str(setting.default).split(",")
            lines += ["", f"## Default of `{setting.key}`", ""]
            lines += [f"- `{part}`" for part in parts]
    return {"docs/settings.md": "\n".join(lines) + "\n"}


def _row(setting: Setting) -> str:
    meaning = setting.doc.replace("|", "\\|")
    default = "listed below" if _is_long(setting) else _code(setting)
    return f"| `{setting.key}` | {setting.type_name} | {default} | {_range(setting)} | {meaning} |"


def _is_long(setting: Setting) -> bool:
    return len(str(setting.default)) > _LONGEST_DEFAULT


def _code(setting: Setting) -> str:
    value = setting.default
    if value == "":
        return "(blank)"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _range(setting: Setting) -> str:
    low, high = (
        None if end is None else f"{end:.12g}" for end in (setting.minimum, setting.maximum)
    )
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"at least {low}"
    return "" if high is None else f"at most {high}"


def findings_page() -> Mapping[str, str]:
    """docs/findings.md: every kind of finding, and its default policy."""
    lines = [
        "# Findings",
        "",
        "What operators can hear of. Every finding is an event on `audit.findings`; `info` stays",
        "there, the rest is delivered by the policy of its kind, which three settings change:",
        "`findings.<kind>.delivery`, `.min_severity` and `.cooldown_minutes`. A cooldown is kept",
        "per kind and source. What is critical is always delivered. A kind that is not listed is",
        "delivered without a cooldown, the same words once in `alert_repeat_minutes`.",
        "`python -m streams findings list` shows what there was.",
        "",
        "This page is generated from the registry by `make docs`.",
        "",
        "| kind | severity | delivery | cooldown | meaning | what to do |",
        "|---|---|---|---|---|---|",
    ]
    for kind in FINDING_KINDS.values():
        cooldown = f"{kind.cooldown_minutes:g} min" if kind.cooldown_minutes else "none"
        lines.append(
            f"| `{kind.kind}` | {kind.severity} | {kind.delivery} | {cooldown} "
            f"| {kind.meaning} | {kind.action} |"
        )
    return {"docs/findings.md": "\n".join(lines) + "\n"}


def event_contracts() -> Mapping[str, str]:
    """schemas/json/: the JSON Schema of each topic's record, and the AsyncAPI document."""
    return {f"schemas/json/{name}": text for name, text in documents().items()}


GENERATORS: Sequence[Callable[[], Mapping[str, str]]] = (
    settings_page,
    findings_page,
    event_contracts,
)


def generate(root: Path, *, check: bool) -> list[str]:
    """Bring the files under `root` up to date; returns those that were not.

    With `check` nothing is written.
    """
    stale = []
    for generator in GENERATORS:
        for name, text in generator().items():
            path = root / name
            if path.is_file() and path.read_text(encoding="utf-8") == text:
                continue
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    return stale


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the generated files again.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if one is stale")
    check = bool(parser.parse_args(argv).check)
    stale = generate(ROOT, check=check)
    for name in stale:
        sys.stderr.write(f"{'out of date, run make docs' if check else 'written'}: {name}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
