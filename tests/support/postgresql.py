"""Start a real PostgreSQL server for the time of a test."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from support.http import find_free_port

USER = "operator"
PASSWORD = "p@ss/wörd #1"  # noqa: S105 - of a server that lives as long as a test; hard to escape
DATABASE = "games"
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "8MB",
    "max_connections": "10",
    "listen_addresses": "127.0.0.1",
}


class Server(NamedTuple):
    """A running server: its process, its port, and a connection of its owner."""

    process: "subprocess.Popen[bytes]"
    port: int
    connection: "psycopg.Connection[tuple[object, ...]]"

    @property
    def address(self) -> str:
        """The URL without user and password."""
        return f"postgresql://127.0.0.1:{self.port}/{DATABASE}"


@contextmanager
def start_postgresql() -> Iterator[Server]:
    """Start a server on a free port of the loopback interface; skip the test without PostgreSQL."""
    programs = _find_programs()
    user = _choose_user()
    with tempfile.TemporaryDirectory(prefix="srvstat-pg-", dir="/tmp") as name:
        directory = Path(name)
        if user is not None:
            shutil.chown(directory, user)
        (directory / "password").write_text(PASSWORD, encoding="utf-8")
        (directory / "password").chmod(0o644)
        initdb: list[str | Path] = [
            programs / "initdb",
            f"--pgdata={directory}/data",
            f"--username={USER}",
            f"--pwfile={directory}/password",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]
        subprocess.run(initdb, user=user, check=True, capture_output=True, cwd=directory)
        port = find_free_port()
        settings = {**_SETTINGS, "port": port, "unix_socket_directories": directory}
        postgres: list[str | Path] = [programs / "postgres", "-D", directory / "data"]
        for key, value in settings.items():
            postgres += ["-c", f"{key}={value}"]
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(postgres, user=user, stderr=log, cwd=directory)
        try:
            with _connect(port) as connection:
                connection.autocommit = True
                connection.execute(f"CREATE DATABASE {DATABASE}")
            with _connect(port, DATABASE) as connection:
                connection.autocommit = True
                yield Server(process, port, connection)
        finally:
            # Also ends the processes of the server, which would still write after SIGKILL.
            process.send_signal(signal.SIGQUIT)
            process.wait(timeout=30)


def _connect(port: int, database: str = "postgres") -> "psycopg.Connection[tuple[object, ...]]":
    """Connect once the server accepts connections."""
    for _ in range(200):
        try:
            return psycopg.connect(
                host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname=database
            )
        except psycopg.OperationalError as error:
            last = error
            time.sleep(0.05)
    raise last


def _find_programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if program := shutil.which("postgres"):
        found.append(Path(program))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    return found[-1].parent


def _choose_user() -> str | None:
    """Return a user other than root, as whom PostgreSQL refuses to run."""
    if os.getuid():
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
