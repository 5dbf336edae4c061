"""`serve --limits-storage` with a storage that can't be used."""

import socket
import sys
from pathlib import Path

import pytest

from asgi.small_service import build_small, format_access
from conftest import Cli

IN_PROCESS = "without --limits-storage, each process counts its own requests"


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    access = tmp_path / "access.toml"
    access.write_text(format_access({}), encoding="utf-8")
    return ["serve", "-s", str(build_small(tmp_path)), "--access", str(access), "--port", "0"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("redis://me:secret@127.0.0.1:{port}/0", "Connection refused"),
        ("redis://:secret@127.0.0.1:{port}000/0", "an invalid port or parameter"),
        ("redis://:secret@127.0.0.1:{port}/0?secret=secret", "an unknown parameter"),
        ("unix://:secret@/nowhere/redis.sock?db=1", "No such file or directory"),
    ],
)
def test_a_storage_that_cannot_be_used_is_named_without_its_password(
    url: str, problem: str, options: list[str], cli: Cli
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = url.format(port=free.getsockname()[1])
    head, _, rest = url.partition("//")
    shown = f"{head}//{rest.partition('@')[2].partition('?')[0]}"

    ran = cli(*options, "--limits-storage", url)

    message = f"error: limits storage {shown}: {problem}; {IN_PROCESS}\n"
    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr.startswith(message)
    assert "secret" not in ran.stderr


@pytest.mark.parametrize(
    "url",
    [
        *("", "memory://", "localhost:6379", "redis://", "redis://host/x", "redis://host/0#1"),
        *("redis://:sec/ret@host/0", "redis://:sec#ret@host", "redis://:sec?ret@host", "unix://"),
        *("redis://me:12/34@host", "redis://:sec@ret@host/0", "http://host/0", "redis://a,b/0"),
    ],
)
def test_a_malformed_url_is_not_shown(url: str, options: list[str], cli: Cli) -> None:
    ran = cli(*options, f"--limits-storage={url}")

    assert ran.exit_code == 2
    assert ran.stderr.startswith("error: --limits-storage: not a URL like redis://HOST:PORT/0, ")


def test_limits_need_an_access_file(options: list[str], cli: Cli) -> None:
    ran = cli(*options[:3], "--limits-storage", "redis://localhost")

    assert ran.exit_code == 2
    assert "--limits-storage: needs --access FILE, whose plans have limits" in ran.stderr


def test_the_package_can_be_missing(
    options: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "srvstat.asgi.redis_limits", raising=False)

    ran = cli(*options, "--limits-storage", "redis://localhost")

    assert ran.exit_code == 2
    assert "the package redis is missing; run pip install 'srvstat[limits]'" in ran.stderr
