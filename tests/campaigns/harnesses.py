"""Harnesses for the fuzzer and for the files in tests/corpus.

A harness takes arbitrary bytes and raises BrokenPromiseError if a promise is broken.
"""

from collections.abc import Callable, Mapping
from itertools import product

from campaigns.hostile_snapshots import (
    BrokenPromiseError,
    ask_any_file,
    ask_damaged_file,
    ask_forged_file,
)
from campaigns.request_oracle import compute_verdict
from campaigns.requests import find_disagreement
from campaigns.text_places import (
    Place,
    find_fault,
    show_in_comparison,
    show_in_detail,
    show_in_json,
    show_in_list,
    show_in_messages,
)
from srvstat.render.screen import Screen

_SCREENS = [
    Screen(width, color, ascii_only)
    for width, color, ascii_only in product((20, 40, 80, None), (False, True), (False, True))
]
_PLACES: tuple[Place, ...] = (
    show_in_comparison,
    show_in_list,
    show_in_detail,
    show_in_json,
    show_in_messages,
)
_SNAPSHOTS = (ask_damaged_file, ask_forged_file, ask_any_file)


def check_request(data: bytes) -> None:
    """Validate bytes as a request body, and compare the verdict with the oracle's."""
    if failure := find_disagreement(data, compute_verdict(data)):
        raise BrokenPromiseError(failure)


def check_snapshot(data: bytes) -> None:
    """Ask a snapshot made from bytes every question; the first byte selects how it is made."""
    if data:
        _SNAPSHOTS[data[0] % len(_SNAPSHOTS)](data[1:])


def check_text(data: bytes) -> None:
    """Display texts, separated by `|`; the first two bytes select the place and the screen."""
    if len(data) > 1:
        texts = data[2:].decode("utf-8", "surrogateescape").split("|")
        place = _PLACES[data[0] % len(_PLACES)]
        if fault := find_fault(place, texts, _SCREENS[data[1] % len(_SCREENS)]):
            raise BrokenPromiseError(fault)


HARNESSES: Mapping[str, Callable[[bytes], None]] = {
    "requests": check_request,
    "snapshots": check_snapshot,
    "text": check_text,
}
