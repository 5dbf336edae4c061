"""Wait for entries of a service's log."""

import os
import time
from typing import Any

from support.http import send_request
from support.process import Service


def wait_for_entries(service: Service, number: int, after: int = 0) -> list[dict[str, Any]]:
    """Wait for a number of entries, check that no more come, and return them."""
    deadline = time.monotonic() + 5
    while len(service.read_log()) < after + number and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.07)  # longer than the log collects lines
    found = service.read_log()[after:]
    assert len(found) == number, found
    return found


def wait_for_events(service: Service, number: int) -> list[dict[str, Any]]:
    """Wait for a number of entries about something other than requests, and return them."""
    deadline = time.monotonic() + 5
    while len(list_events(service)) < number and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.07)
    found = list_events(service)
    assert len(found) == number, found
    return found


def list_events(service: Service) -> list[dict[str, Any]]:
    """Return the entries so far about something other than requests."""
    return [entry for entry in service.read_log() if "event" in entry]


def empty_log(service: Service, sent: bytes) -> None:
    """Send a request, wait for its entry, which follows all earlier ones, and empty the log."""
    log_request(service, sent)
    os.truncate(service.log_path, 0)


def log_request(service: Service, sent: bytes) -> dict[str, Any]:
    """Send a request, and return its only entry; its reason is that of the answer, if any."""
    answer = send_request(service, sent, to_head=sent.startswith(b"HEAD"))
    deadline = time.monotonic() + 5
    while not (found := _find_entries(service, answer.headers["x-request-id"])):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (entry,) = found
    assert entry["status"] == answer.status
    assert entry["bytes"] == len(answer.body)
    explained = answer.headers.get("x-srvstat-reason")
    assert explained in (None, entry.get("reason", "").replace("…", "..."))
    return entry


def _find_entries(service: Service, request_id: str) -> list[dict[str, Any]]:
    return [entry for entry in service.read_log() if entry.get("id") == request_id]
