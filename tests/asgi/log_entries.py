"""Entries of a service's log, waited for."""

import time
from typing import Any

from support.http import send_request
from support.process import Service


def entries(service: Service, number: int, after: int = 0) -> list[dict[str, Any]]:
    """Return a number of entries of the log, once there are so many, and see that no more come."""
    deadline = time.monotonic() + 5
    while len(service.log()) < after + number and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.07)  # longer than the log collects lines
    found = service.log()[after:]
    assert len(found) == number, found
    return found


def notices(service: Service, number: int, after: int = 0) -> list[dict[str, Any]]:
    """Return what the log tells besides requests, as `entries` does."""
    deadline = time.monotonic() + 5
    while len(notices_so_far(service)) < after + number and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.07)
    found = notices_so_far(service)[after:]
    assert len(found) == number, found
    return found


def notices_so_far(service: Service) -> list[dict[str, Any]]:
    """Return what the log has told by now besides requests."""
    return [entry for entry in service.log() if "event" in entry]


def logged(service: Service, sent: bytes) -> dict[str, Any]:
    """Send a request, and return the only entry that has its answer's id."""
    answer = send_request(service, sent, to_head=sent.startswith(b"HEAD"))
    deadline = time.monotonic() + 5
    while not (found := _of_request(service, answer.headers["x-request-id"])):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (entry,) = found
    assert entry["status"] == answer.status
    assert entry["bytes"] == len(answer.body)
    return entry


def _of_request(service: Service, request_id: str) -> list[dict[str, Any]]:
    return [entry for entry in service.log() if entry.get("id") == request_id]
