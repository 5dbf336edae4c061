"""Another access file, or another key in it, while the service runs."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asgi.log_entries import notices, notices_so_far
from asgi.small_service import access_text, build_small
from conftest import srvstat
from support.http import COMPARE, HOST, JSON, TWO, A, Client, request, send_request
from support.process import Service, serve


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


@pytest.fixture
def access(tmp_path: Path) -> Path:
    """Return an access file with an old key, and one that stays."""
    path = tmp_path / "access.toml"
    path.write_text(access_text({"old-key": "all", "lasting-key": "get"}), encoding="utf-8")
    return path


@pytest.fixture
def service(small: str, access: Path) -> Iterator[Service]:
    with serve(small, "--access", str(access)) as under_way:
        yield under_way


def replaced(path: Path, text: str) -> None:
    path.with_name("next").write_text(text, encoding="utf-8")
    os.replace(path.with_name("next"), path)


def status(service: Service, key: str) -> int:
    """Return the status of the answer to a key that asks for a server."""
    return send_request(service, request(A, HOST, b"X-Gateway-Key: " + key.encode())).status


def test_a_key_is_good_from_the_next_request_on_and_no_longer_once_it_is_gone(
    service: Service, access: Path
) -> None:
    assert (status(service, "old-key"), status(service, "new-key")) == (200, 401)

    replaced(access, access_text({"new-key": "all", "lasting-key": "get"}))

    assert (status(service, "old-key"), status(service, "new-key")) == (401, 200)
    assert status(service, "lasting-key") == 200
    assert notices(service, 1)[0]["event"] == "new access file in use"


def test_a_key_made_by_the_command_is_good_at_once(service: Service, access: Path) -> None:
    ran = srvstat("access", "new-key", "--plan", "all", "--access", str(access))
    assert ran.exit_code == 0, ran.stderr

    assert status(service, ran.stdout.decode().strip()) == 200
    assert status(service, "old-key") == 200


def test_open_connections_lose_a_key_that_is_gone(service: Service, access: Path) -> None:
    sent = request(A, HOST, b"X-Gateway-Key: old-key")
    with Client(service) as client:
        client.send(sent)
        assert client.read_answer().status == 200
        replaced(access, access_text({}))
        client.send(sent)
        assert client.read_answer().status == 401


def test_a_plan_may_change(service: Service, access: Path) -> None:
    sent = request(COMPARE, HOST, b"X-Gateway-Key: lasting-key", JSON, body=TWO)
    assert send_request(service, sent).status == 403

    replaced(access, access_text({"lasting-key": "compare"}))

    assert send_request(service, sent).status == 200
    assert status(service, "lasting-key") == 403


def test_a_limit_that_is_new_counts_from_then_on(service: Service, access: Path) -> None:
    assert [status(service, "old-key") for _ in range(5)] == [200] * 5

    replaced(access, access_text({"old-key": "three"}))

    assert [status(service, "old-key") for _ in range(5)] == [200] * 3 + [429] * 2


def test_a_limit_that_is_raised_keeps_what_was_counted(service: Service, access: Path) -> None:
    replaced(access, access_text({"old-key": "three"}))
    assert [status(service, "old-key") for _ in range(4)] == [200] * 3 + [429]

    text = access_text({"old-key": "three"})
    replaced(access, text.replace("requests_per_minute = 3", "requests_per_minute = 5"))

    assert [status(service, "old-key") for _ in range(4)] == [200] * 2 + [429] * 2


def to_nothing(access: Path) -> None:
    access.unlink()


def to_a_directory(access: Path) -> None:
    access.unlink()
    access.mkdir()


def to_a_pipe(access: Path) -> None:
    access.unlink()
    os.mkfifo(access)


def to_no_toml(access: Path) -> None:
    replaced(access, "[plans.all\n")


def to_an_unknown_property(access: Path) -> None:
    replaced(access, access_text({}) + "more = 1\n")


def to_a_key_in_clear(access: Path) -> None:
    replaced(access, access_text({}) + '[[keys]]\nsha256 = "old-key"\nplan = "all"\n')


def to_an_empty_file(access: Path) -> None:
    replaced(access, "")


def to_no_utf_8(access: Path) -> None:
    access.write_bytes(b"\xff\xfe")


CHANGES = [
    to_nothing,
    to_a_directory,
    to_a_pipe,
    to_no_toml,
    to_an_unknown_property,
    to_a_key_in_clear,
    to_an_empty_file,
    to_no_utf_8,
]


@pytest.fixture(scope="module")
def lasting(small: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    """Serve with an access file that takes all the turns, one after the other."""
    path = tmp_path_factory.mktemp("lasting") / "access.toml"
    path.write_text(access_text({"old-key": "all"}), encoding="utf-8")
    with serve(small, "--access", str(path)) as under_way:
        yield under_way, path


@pytest.mark.parametrize("turn", CHANGES, ids=lambda turn: turn.__name__)
def test_a_bad_access_file_is_refused_once_and_the_old_one_holds(
    turn: Callable[[Path], None], lasting: tuple[Service, Path]
) -> None:
    service, access = lasting
    replaced(access, access_text({"old-key": "all"}))
    assert status(service, "old-key") == 200
    time.sleep(0.07)
    before = len(notices_so_far(service))

    turn(access)
    for _ in range(3):
        assert (status(service, "old-key"), status(service, "new-key")) == (200, 401)

    (notice,) = notices(service, 1, before)
    assert notice["event"] == "new access file rejected; the previous one stays in use"
    assert notice["reason"].startswith(str(access))
    assert "old-key" not in notice["reason"]

    if access.is_dir():
        access.rmdir()
    replaced(access, access_text({"new-key": "all"}))
    assert (status(service, "old-key"), status(service, "new-key")) == (401, 200)
    assert notices(service, 2, before)[1]["event"] == "new access file in use"


def test_a_file_whose_permissions_are_mended_is_taken_without_another_change(
    service: Service, access: Path
) -> None:
    (access.parent / "next").write_text(access_text({"new-key": "all"}), encoding="utf-8")
    (access.parent / "next").chmod(0)
    if os.access(access.parent / "next", os.R_OK):
        pytest.skip("whoever runs this may read everything")
    os.replace(access.parent / "next", access)
    assert status(service, "new-key") == 401

    access.chmod(0o600)

    waited = time.monotonic() + 30
    while status(service, "new-key") == 401:
        assert time.monotonic() < waited
        time.sleep(0.2)
    events = [notice["event"] for notice in notices(service, 2)]
    assert events == [
        "new access file rejected; the previous one stays in use",
        "new access file in use",
    ]
