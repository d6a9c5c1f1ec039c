"""The wheel: what is in it, and that it works with nothing but its declared dependencies.

No network is needed. The wheel is built with the hatchling of this environment and installed into
a new one; the distributions its metadata asks for, and no others, are linked in from here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections import deque
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]

# Packages of the development environment that an accidental import would find.
FORBIDDEN = ("pytest", "hatchling", "hypothesis", "faust", "aiokafka", "schemas", "streams")


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command and return its standard output; a failure shows all it wrote."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**environment, "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    target = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", target, cwd=ROOT)
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel and its runtime dependencies; its bin directory."""
    root = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", root / "venv", cwd=root)
    python = root / "venv/bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=root)
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site_packages = Path(run(python, "-c", purelib, cwd=root).strip())
    (installed,) = metadata.distributions(name="citeflow", path=[str(site_packages)])
    for name in closure(installed.requires or []):
        link(metadata.distribution(name), site_packages)
    # Every requirement is there in a version that satisfies it.
    run(*pip, "check", cwd=root)
    return python.parent


def closure(requirements: list[str]) -> set[str]:
    """The distributions that these requirements need on this machine, directly or not."""
    found: set[tuple[str, str]] = set()
    queue = deque((Requirement(text), "") for text in requirements)
    while queue:
        requirement, parent_extra = queue.popleft()
        if requirement.marker and not requirement.marker.evaluate({"extra": parent_extra}):
            continue
        for extra in ("", *requirement.extras):
            wanted = (canonicalize_name(requirement.name), extra)
            if wanted not in found:
                found.add(wanted)
                inner = metadata.requires(requirement.name) or []
                queue.extend((Requirement(text), extra) for text in inner)
    return {name for name, _ in found}


def link(distribution: metadata.Distribution, site_packages: Path) -> None:
    """Make one installed distribution visible in another environment, file by file."""
    for file in distribution.files or []:
        if ".." in file.parts or file.is_absolute():
            continue
        target = site_packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(Path(str(file.locate())).resolve())


def test_the_wheel_holds_the_library_alone(wheel: Path) -> None:
    """citeflow and its metadata, the type marker and the licence, and nothing else."""
    names = zipfile.ZipFile(wheel).namelist()
    version = metadata.version("citeflow")
    info = f"citeflow-{version}.dist-info"
    assert wheel.name == f"citeflow-{version}-py3-none-any.whl"
    assert {name.partition("/")[0] for name in names} == {"citeflow", info}
    assert {"citeflow/py.typed", f"{info}/licenses/LICENSE"} <= set(names)
    tracked = {str(path.relative_to(ROOT)) for path in (ROOT / "citeflow").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == tracked


def test_the_public_api_needs_no_development_dependency(environment: Path) -> None:
    """Every public name can be imported, from the wheel, with the runtime dependencies alone."""
    program = f"""
import importlib.util, json, citeflow
print(json.dumps({{
    "file": citeflow.__file__,
    "names": len(citeflow.__all__),
    "missing": [name for name in citeflow.__all__ if not hasattr(citeflow, name)],
    "forbidden": [name for name in {FORBIDDEN!r} if importlib.util.find_spec(name)],
}}))
"""
    seen = json.loads(run(environment / "python", "-I", "-c", program, cwd=environment))
    assert Path(seen["file"]).is_relative_to(environment.parent)
    assert seen["names"] > 0
    assert (seen["missing"], seen["forbidden"]) == ([], [])


@pytest.mark.parametrize("command", [("citeflow",), ("python", "-I", "-m", "citeflow")])
def test_the_command_line_is_installed(environment: Path, command: tuple[str, ...]) -> None:
    """`citeflow --help` and `python -m citeflow --help` answer."""
    program, *arguments = command
    help_text = run(environment / program, *arguments, "--help", cwd=environment)
    assert "usage: citeflow" in help_text.lower()
