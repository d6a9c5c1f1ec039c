"""The Makefile and .ci/run, with stand-ins for what they call."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

DEFAULT_TOPIC = "FastAPI streaming responses"
CORPUS = """VERIFIED REFERENCE LINKS (use these as citations):
- [a](https://a.example)

RECENT WEB SOURCES (cite if relevant):
- [b](https://b.example): text

CITATION GUIDANCE:
- Cite.
"""
SUMMARY = "======================== 12 passed, 1 skipped in 3.45s ========================="


def executable(path: Path, text: str) -> None:
    """Write a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the real Makefile, no set-up, and a python that tells argv."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    executable(tmp_path / "ops/venv.sh", "#!/bin/sh\n")
    echo = "import json, sys; print(json.dumps(sys.argv[1:]))"
    python = f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c '{echo}' \"$@\"\n"
    executable(tmp_path / ".venv/bin/python", python)
    return tmp_path


def make(checkout: Path, *arguments: str, **env: str) -> str:
    """What make prints on stdout."""
    inherited = {
        k: v for k, v in os.environ.items() if k not in {"TOPIC", "MAKEFLAGS", "MAKELEVEL"}
    }
    done = subprocess.run(
        ["make", *arguments],
        cwd=checkout,
        env={**inherited, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    "topic",
    [
        "plain words",
        'it\'s "quoted" and `ticked`',
        "costs $5, or $(shell touch made) or $(touch made), or ${HOME}; touch made",
        "--leading-dashes",
        "a \\ b # c, (d) %s",
    ],
)
def test_a_topic_arrives_as_it_was_typed(checkout: Path, topic: str) -> None:
    """Neither make nor the shell reads the topic; stdout is the program's alone."""
    expected = ["-m", "streams", "dev", "--demo", f"--once={topic}"]
    assert json.loads(make(checkout, "run", f"TOPIC={topic}")) == expected
    assert json.loads(make(checkout, "run", TOPIC=topic)) == expected
    assert not (checkout / "made").exists()


@pytest.mark.parametrize("arguments", [(), ("TOPIC=",)])
def test_without_a_topic_there_is_a_default(checkout: Path, arguments: tuple[str, ...]) -> None:
    """An absent topic and a blank one are the same."""
    seen = json.loads(make(checkout, "run", *arguments))
    assert seen[-1] == f"--once={DEFAULT_TOPIC}"


def test_help_lists_every_target(checkout: Path) -> None:
    """Plain `make` shows what there is."""
    listed = [line.split()[1] for line in make(checkout).splitlines()]
    assert listed == ["help", "run", "test", "test-kafka", "check", "docs", "clean"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout with the real .ci/run and a `make` that fails at, or prints, what a test says."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (tmp_path / "corpus").write_text(CORPUS)
    executable(
        tmp_path / "bin/make",
        f"""#!/bin/sh
test "$1" != "$FAIL_AT" || exit 3
case $1 in
    test) printf '%s\\n' collected '{SUMMARY}' ;;
    run) echo progress >&2; cat corpus ;;
esac
""",
    )
    return tmp_path


def ci(clone: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run .ci/run from another directory, as a CI machine may."""
    path = f"{clone / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        [clone / ".ci/run"],
        cwd="/",
        env={**os.environ, "FAIL_AT": "", "PATH": path, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_ci_ends_with_the_summary_of_the_tests(clone: Path) -> None:
    """When all is well the last line is the test runner's closing line."""
    done = ci(clone)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, SUMMARY)


@pytest.mark.parametrize("step", ["check", "test", "run"])
def test_ci_fails_when_a_step_fails(clone: Path, step: str) -> None:
    """No step's failure is lost, whatever its output is piped into."""
    assert ci(clone, FAIL_AT=step).returncode != 0


@pytest.mark.parametrize(
    "corpus",
    [
        "",
        "noise\n" + CORPUS,
        CORPUS.replace("RECENT WEB SOURCES (cite if relevant):\n", ""),
        CORPUS.replace("CITATION GUIDANCE:\n", ""),
        CORPUS + CORPUS,
        "\n\n".join([CORPUS.split("\n\n")[index] for index in (0, 2, 1)]),
    ],
    ids=["empty", "noise first", "no sources", "no guidance", "twice", "order"],
)
def test_ci_fails_on_a_wrong_corpus(clone: Path, corpus: str) -> None:
    """The three sections must be there, once, in order, and first of all."""
    (clone / "corpus").write_text(corpus)
    done = ci(clone)
    assert done.returncode != 0
    assert "missing or out of order" in done.stderr
