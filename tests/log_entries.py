"""Entries of a service's log, waited for."""

import time
from typing import Any

from exchanging import answer_to
from serving import Service


def entries(service: Service, number: int, after: int = 0) -> list[dict[str, Any]]:
    """Return a number of entries of the log, once there are so many, and see that no more come."""
    deadline = time.monotonic() + 5
    while len(service.log()) < after + number and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.07)  # longer than the log collects lines
    found = service.log()[after:]
    assert len(found) == number, found
    return found


def logged(service: Service, sent: bytes) -> dict[str, Any]:
    """Send a request, and return its only entry, which has the answer's own id."""
    before = len(service.log())
    answer = answer_to(service, sent, to_head=sent.startswith(b"HEAD"))
    (entry,) = entries(service, 1, before)
    assert entry["id"] == answer.headers["x-request-id"]
    assert entry["status"] == answer.status
    assert entry["bytes"] == len(answer.body)
    return entry
