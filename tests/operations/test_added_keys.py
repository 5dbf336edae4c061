"""Generate keys and append them to an access file."""

import hashlib
import multiprocessing
import os
import re
import stat
import sys
from pathlib import Path
from subprocess import run

import pytest

from srvstat.contract.errors import OutputError, SourceError, UsageError
from srvstat.operations.access import add_key, generate_key, read_access
from support.access import PLANS, format_key_table

ONE = "1" * 64


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file with two plans and no keys."""
    path = tmp_path / "access.toml"
    path.write_text(PLANS)
    return path


def test_a_generated_key_is_random_and_has_a_prefix() -> None:
    keys = {generate_key() for _ in range(1_000)}

    assert len(keys) == 1_000
    assert all(re.fullmatch(r"srvstat_[A-Za-z0-9_-]{43}", key) for key in keys)


def test_a_key_is_appended_and_the_file_is_otherwise_unchanged(path: Path) -> None:
    link = path.with_name("link.toml")
    link.symlink_to(path)
    path.chmod(0o640)
    before = path.stat()
    key = generate_key()

    add_key(str(link), "details", key)

    sha256 = hashlib.sha256(key.encode()).hexdigest()
    assert path.read_text() == PLANS + format_key_table(sha256, "details")
    customer = read_access(str(path)).find_customer(key.encode())
    assert customer is not None
    assert customer.plan.name == "details"
    assert link.is_symlink()
    after = path.stat()
    assert (after.st_ino, stat.S_IMODE(after.st_mode)) == (before.st_ino, 0o640)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "# and a comment", "\n\n\n"])
def test_a_key_is_appended_after_any_end_of_file(path: Path, end: str) -> None:
    before = (PLANS.rstrip("\n") + end).encode()
    path.write_bytes(before)
    keys = [generate_key() for _ in range(3)]

    for key in keys:
        add_key(str(path), "starter", key)

    access = read_access(str(path))
    assert all(access.find_customer(key.encode()) for key in keys)
    assert len(access.customers) == 3
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.replace(b"\r", b"").count(b"\n\n[[keys]]\n") == 3


def test_a_key_cannot_be_appended_to_inline_keys(path: Path) -> None:
    content = f'keys = [{{sha256 = "{ONE}", plan = "starter"}}]\n{PLANS}'
    path.write_text(content)

    with pytest.raises(SourceError) as refused:
        add_key(str(path), "starter", generate_key())

    assert refused.value.reason == (
        f"{path}: a key can't be appended; write the existing keys as [[keys]] tables, not as"
        " keys = […]"
    )
    assert path.read_text() == content


def test_an_existing_key_or_an_unknown_plan_is_rejected(path: Path) -> None:
    key = generate_key()
    add_key(str(path), "starter", key)
    before = path.read_text()

    with pytest.raises(SourceError, match="already has this key"):
        add_key(str(path), "details", key)
    with pytest.raises(UsageError, match=r'no plan "pro"; the file has starter, details'):
        add_key(str(path), "pro", generate_key())

    assert path.read_text() == before


def test_no_key_is_appended_to_an_invalid_file(path: Path) -> None:
    path.write_text("nonsense")

    with pytest.raises(SourceError, match="line 1: not TOML"):
        add_key(str(path), "starter", generate_key())

    assert path.read_text() == "nonsense"


def test_a_partly_written_key_is_removed(path: Path) -> None:
    code = """
import resource, sys
from srvstat.operations.access import add_key
from srvstat.contract.errors import OutputError
path, size = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
try:
    add_key(path, "starter", "a key")
except OutputError as error:
    print(error.reason.removeprefix(path))
"""
    command = [sys.executable, "-c", code, str(path), str(len(PLANS) + 20)]

    done = run(command, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == (": File too large\n", "")
    assert path.read_text() == PLANS


def test_a_read_only_file_is_an_output_error(path: Path) -> None:
    path.chmod(0o400)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write all files")

    with pytest.raises(OutputError, match="Permission denied"):
        add_key(str(path), "starter", generate_key())


def _add_keys(path: str, count: int) -> list[str]:
    keys = [generate_key() for _ in range(count)]
    for key in keys:
        add_key(path, "starter", key)
    return keys


def test_keys_appended_by_two_processes_are_all_kept(path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        added = pool.starmap(_add_keys, [(str(path), 50)] * 2)

    access = read_access(str(path))
    assert len(access.customers) == 100
    assert all(access.find_customer(key.encode()) for keys in added for key in keys)


def test_replacing_the_file_meanwhile_is_an_error(path: Path) -> None:
    code = """
import fcntl, os, sys, threading
from srvstat.operations.access import add_key
from srvstat.contract.errors import OutputError
path = sys.argv[1]
with open(path) as locked:
    fcntl.flock(locked, fcntl.LOCK_EX)
    done = []
    def add():
        try:
            add_key(path, "starter", "a key")
        except OutputError as error:
            done.append(error.reason)
    adding = threading.Thread(target=add)
    adding.start()
    adding.join(0.5)
    assert adding.is_alive()
    os.link(path, path + ".old")
    with open(path + ".new", "w") as new:
        new.write(locked.read())
    os.rename(path + ".new", path)
adding.join()
print(*done)
"""
    done = run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)

    assert done.stdout == f"{path}: was replaced while the key was added; try again\n"
    assert path.read_text() == path.with_name("access.toml.old").read_text() == PLANS


def test_a_key_is_neither_stored_nor_in_the_representation(path: Path) -> None:
    key = generate_key()
    add_key(str(path), "starter", key)

    access = read_access(str(path))

    assert key not in repr(access) + repr(access.customers)
    assert key not in path.read_text()
