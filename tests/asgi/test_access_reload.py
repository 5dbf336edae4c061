"""Change the access file while the service runs."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asgi.log_entries import empty_log, wait_for_events
from asgi.small_service import build_small, format_access
from conftest import Cli
from support.http import COMPARE, HOST, JSON, TWO, A, Client, request, send_request
from support.process import Service, serve

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


KEYS = {"old-key": "all", "lasting-key": "get"}


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an access file with two keys."""
    path = tmp_path_factory.mktemp("served") / "access.toml"
    path.write_text(format_access(KEYS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def running(small: str, access: Path) -> Iterator[Service]:
    with serve(small, "--access", str(access)) as running:
        yield running


@pytest.fixture
def service(running: Service, access: Path) -> Service:
    """Return the service with an empty log; it accepts the two keys."""
    replace(access, format_access(KEYS))
    empty_log(running, request(A, HOST, b"X-Gateway-Key: old-key"))
    return running


def replace(path: Path, text: str) -> None:
    path.with_name("next").write_text(text, encoding="utf-8")
    os.replace(path.with_name("next"), path)


def get_status(service: Service, key: str) -> int:
    """Return the status of Get Server with a key."""
    return send_request(service, request(A, HOST, b"X-Gateway-Key: " + key.encode())).status


def test_a_replaced_access_file_is_used_by_the_next_request(service: Service, access: Path) -> None:
    assert (get_status(service, "old-key"), get_status(service, "new-key")) == (200, 401)

    replace(access, format_access({"new-key": "all", "lasting-key": "get"}))

    assert (get_status(service, "old-key"), get_status(service, "new-key")) == (401, 200)
    assert get_status(service, "lasting-key") == 200
    assert wait_for_events(service, 1)[0]["event"] == "new access file in use"


def test_a_key_added_by_the_command_is_valid_at_once(
    service: Service, access: Path, cli: Cli
) -> None:
    ran = cli("access", "new-key", "--plan", "all", "--access", str(access))
    assert ran.exit_code == 0, ran.stderr

    assert get_status(service, ran.stdout.decode().strip()) == 200
    assert get_status(service, "old-key") == 200


def test_a_removed_key_is_refused_on_open_connections(service: Service, access: Path) -> None:
    sent = request(A, HOST, b"X-Gateway-Key: old-key")
    with Client(service) as client:
        client.send(sent)
        assert client.read_answer().status == 200
        replace(access, format_access({}))
        client.send(sent)
        assert client.read_answer().status == 401


def test_a_changed_plan_is_used(service: Service, access: Path) -> None:
    sent = request(COMPARE, HOST, b"X-Gateway-Key: lasting-key", JSON, body=TWO)
    assert send_request(service, sent).status == 403

    replace(access, format_access({"lasting-key": "compare"}))

    assert send_request(service, sent).status == 200
    assert get_status(service, "lasting-key") == 403


def test_a_new_limit_counts_from_then_on(service: Service, access: Path) -> None:
    assert [get_status(service, "old-key") for _ in range(5)] == [200] * 5

    replace(access, format_access({"old-key": "three"}))

    assert [get_status(service, "old-key") for _ in range(5)] == [200] * 3 + [429] * 2


def test_a_raised_limit_keeps_the_count(service: Service, access: Path) -> None:
    text = format_access({"limited-key": "three"})
    replace(access, text)
    assert [get_status(service, "limited-key") for _ in range(4)] == [200] * 3 + [429]

    replace(access, text.replace("requests_per_minute = 3", "requests_per_minute = 5"))

    assert [get_status(service, "limited-key") for _ in range(4)] == [200] * 2 + [429] * 2


def remove(access: Path) -> None:
    access.unlink()


def make_directory(access: Path) -> None:
    access.unlink()
    access.mkdir()


def make_pipe(access: Path) -> None:
    access.unlink()
    os.mkfifo(access)


def write_malformed_toml(access: Path) -> None:
    replace(access, "[plans.all\n")


def write_unknown_property(access: Path) -> None:
    replace(access, format_access({}) + "more = 1\n")


def write_plain_key(access: Path) -> None:
    replace(access, format_access({}) + '[[keys]]\nsha256 = "old-key"\nplan = "all"\n')


def write_nothing(access: Path) -> None:
    replace(access, "")


def write_invalid_utf_8(access: Path) -> None:
    access.write_bytes(b"\xff\xfe")


CHANGES = [
    remove,
    make_directory,
    make_pipe,
    write_malformed_toml,
    write_unknown_property,
    write_plain_key,
    write_nothing,
    write_invalid_utf_8,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_bad_access_file_is_rejected_once_and_the_previous_one_stays(
    change: Callable[[Path], None], service: Service, access: Path
) -> None:
    change(access)
    for _ in range(3):
        assert (get_status(service, "old-key"), get_status(service, "new-key")) == (200, 401)

    (event,) = wait_for_events(service, 1)
    assert event["event"] == "new access file rejected; the previous one stays in use"
    assert event["reason"].startswith(str(access))
    assert "old-key" not in event["reason"]

    if access.is_dir():
        access.rmdir()
    replace(access, format_access({"new-key": "all"}))
    assert (get_status(service, "old-key"), get_status(service, "new-key")) == (401, 200)
    assert wait_for_events(service, 2)[1]["event"] == "new access file in use"


def test_a_file_is_used_once_its_permissions_are_corrected(service: Service, access: Path) -> None:
    (access.parent / "next").write_text(format_access({"new-key": "all"}), encoding="utf-8")
    (access.parent / "next").chmod(0)
    if os.access(access.parent / "next", os.R_OK):
        pytest.skip("this user may read every file")
    os.replace(access.parent / "next", access)
    assert get_status(service, "new-key") == 401

    access.chmod(0o600)

    waited = time.monotonic() + 30
    while get_status(service, "new-key") == 401:
        assert time.monotonic() < waited
        time.sleep(0.2)
    events = [event["event"] for event in wait_for_events(service, 2)]
    assert events == [
        "new access file rejected; the previous one stays in use",
        "new access file in use",
    ]
