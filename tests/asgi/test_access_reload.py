"""Change the access file while the service runs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asgi.small_service import build_small, empty_log, format_access, wait_for_events
from conftest import Cli
from support.http import COMPARE, HOST, JSON, TWO, A, request, send_request
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


def test_a_changed_plan_is_used(service: Service, access: Path) -> None:
    sent = request(COMPARE, HOST, b"X-Gateway-Key: lasting-key", JSON, body=TWO)
    assert send_request(service, sent).status == 403

    replace(access, format_access({"lasting-key": "compare"}))

    assert send_request(service, sent).status == 200
    assert get_status(service, "lasting-key") == 403


def test_a_raised_limit_keeps_the_count(service: Service, access: Path) -> None:
    text = format_access({"limited-key": "three"})
    replace(access, text)
    assert [get_status(service, "limited-key") for _ in range(4)] == [200] * 3 + [429]

    replace(access, text.replace("requests_per_minute = 3", "requests_per_minute = 5"))

    assert [get_status(service, "limited-key") for _ in range(4)] == [200] * 2 + [429] * 2


def remove(access: Path) -> None:
    access.unlink()


def make_pipe(access: Path) -> None:
    access.unlink()
    os.mkfifo(access)


def write_malformed_toml(access: Path) -> None:
    replace(access, "[plans.all\n")


def write_invalid_utf_8(access: Path) -> None:
    access.write_bytes(b"\xff\xfe")


CHANGES = [remove, make_pipe, write_malformed_toml, write_invalid_utf_8]


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

    replace(access, format_access({"new-key": "all"}))
    assert (get_status(service, "old-key"), get_status(service, "new-key")) == (401, 200)
    assert wait_for_events(service, 2)[1]["event"] == "new access file in use"
