"""Keys, made at random and added to the access file where it stands."""

import hashlib
import multiprocessing
import os
import re
import stat
import sys
from pathlib import Path
from subprocess import run

import pytest

from srvstat.access import add_key, generate_key, read_access
from srvstat.contract.errors import OutputError, SourceError, UsageError
from support.access_files import PLANS, key_table

ONE = "1" * 64


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a file with two plans and no key stands."""
    path = tmp_path / "access.toml"
    path.write_text(PLANS)
    return path


def test_a_new_key_is_random_and_says_whose_it_is() -> None:
    keys = {generate_key() for _ in range(1_000)}

    assert len(keys) == 1_000
    assert all(re.fullmatch(r"srvstat_[A-Za-z0-9_-]{43}", key) for key in keys)


def test_a_key_is_added_at_the_end_and_the_rest_stays_as_it_was(path: Path) -> None:
    link = path.with_name("link.toml")
    link.symlink_to(path)
    path.chmod(0o640)
    before = path.stat()
    key = generate_key()

    add_key(str(link), "details", key)

    sha256 = hashlib.sha256(key.encode()).hexdigest()
    assert path.read_text() == PLANS + key_table(sha256, "details")
    customer = read_access(str(path)).find_customer(key.encode())
    assert customer is not None
    assert customer.plan.name == "details"
    assert link.is_symlink()
    after = path.stat()
    assert (after.st_ino, stat.S_IMODE(after.st_mode)) == (before.st_ino, 0o640)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "# and a comment", "\n\n\n"])
def test_a_key_is_added_however_the_file_ends(path: Path, end: str) -> None:
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


def test_keys_in_an_array_take_no_key_at_the_end(path: Path) -> None:
    content = f'keys = [{{sha256 = "{ONE}", plan = "starter"}}]\n{PLANS}'
    path.write_text(content)

    with pytest.raises(SourceError) as refused:
        add_key(str(path), "starter", generate_key())

    assert refused.value.reason == (
        f"{path}: a key can't be added at its end; write those it has as [[keys]] tables, not as"
        " keys = […]"
    )
    assert path.read_text() == content


def test_a_key_is_added_once_and_for_a_plan_that_there_is(path: Path) -> None:
    key = generate_key()
    add_key(str(path), "starter", key)
    before = path.read_text()

    with pytest.raises(SourceError, match="has this key already"):
        add_key(str(path), "details", key)
    with pytest.raises(UsageError, match=r'no plan "pro"; there are starter, details'):
        add_key(str(path), "pro", generate_key())

    assert path.read_text() == before


def test_a_file_that_cannot_be_read_as_access_takes_no_key(path: Path) -> None:
    path.write_text("nonsense")

    with pytest.raises(SourceError, match="line 1: not TOML"):
        add_key(str(path), "starter", generate_key())

    assert path.read_text() == "nonsense"


def test_a_key_that_could_be_written_in_part_alone_is_taken_back(path: Path) -> None:
    code = """
import resource, sys
from srvstat.access import add_key
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


def test_a_file_that_may_not_be_written_is_an_error_of_output(path: Path) -> None:
    path.chmod(0o400)
    if os.access(path, os.W_OK):
        pytest.skip("whoever runs this may write everything")

    with pytest.raises(OutputError, match="Permission denied"):
        add_key(str(path), "starter", generate_key())


def _add_some(path: str, count: int) -> list[str]:
    keys = [generate_key() for _ in range(count)]
    for key in keys:
        add_key(path, "starter", key)
    return keys


def test_keys_that_are_added_at_the_same_time_are_all_there(path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        added = pool.starmap(_add_some, [(str(path), 50)] * 2)

    access = read_access(str(path))
    assert len(access.customers) == 100
    assert all(access.find_customer(key.encode()) for keys in added for key in keys)


def test_a_file_that_is_replaced_meanwhile_is_told_of(path: Path) -> None:
    code = """
import fcntl, os, sys, threading
from srvstat.access import add_key
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
