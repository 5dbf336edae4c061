"""What arbitrary bytes are thrown at, by the fuzzer and, for ever, from the files in tests/corpus.

A harness takes any bytes and raises where a promise is broken.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from itertools import product
from pathlib import Path

from campaigns.request_oracle import expected
from campaigns.requests import disagreement
from campaigns.text_places import (
    Place,
    find_fault,
    in_a_comparison,
    in_a_detail,
    in_a_list,
    in_json,
    in_messages,
)
from conftest import AS_OF, DAY, csv, ndjson, server, srvstat
from srvstat import operations
from srvstat.contract.errors import ServerNotFoundError, SnapshotError
from srvstat.contract.ranges import DAYS, Range
from srvstat.contract.requests import compare_request, server_reference
from srvstat.render import tables
from srvstat.render.screen import Screen
from srvstat.snapshot.read import SnapshotFile, open_file

_MOST_SECONDS = 1.0


class BrokenPromiseError(AssertionError):
    """Bytes for which srvstat does what it says it never does."""


def requests(data: bytes) -> None:
    """Read bytes as a request body; the verdict is the specification's."""
    if failure := disagreement(data, expected(data)):
        raise BrokenPromiseError(failure)


_SCREENS = [
    Screen(width, color, ascii_only)
    for width, color, ascii_only in product((20, 40, 80, None), (False, True), (False, True))
]
_PLACES: tuple[Place, ...] = (in_a_comparison, in_a_list, in_a_detail, in_json, in_messages)


def text(data: bytes) -> None:
    """Show bytes as text: the first two choose the screen and the place, `|` parts the texts."""
    if len(data) < 2:
        return
    place = _PLACES[data[0] % len(_PLACES)]
    screen = _SCREENS[data[1] % len(_SCREENS)]
    texts = data[2:].decode("utf-8", "surrogateescape").split("|")
    if fault := find_fault(place, texts, screen):
        raise BrokenPromiseError(fault)


def snapshots(data: bytes) -> None:
    """Open bytes as a snapshot and ask it everything: answers or errors come within a second.

    Behind an `R` stands a file as it is; any other bytes are changes made to a sound file.
    """
    path = Path(_workplace().name, "fuzzed.db")
    path.write_bytes(data[1:] if data[:1] == b"R" else _changed(_sound_snapshot(), data))
    started = time.process_time()
    with suppress(SnapshotError), closing(open_file(str(path))) as snapshot:
        for question in _QUESTIONS:
            with suppress(SnapshotError, ServerNotFoundError):
                question(snapshot)
    seconds = time.process_time() - started
    if seconds > _MOST_SECONDS:
        raise BrokenPromiseError(f"it took {seconds:.1f} s")


def _changed(sound: bytes, changes: bytes) -> bytes:
    """Change a file; 6 bytes are a change: what it is, three bytes for where, two for how."""
    file = bytearray(sound)
    for start in range(0, len(changes) - 5, 6):
        where = int.from_bytes(changes[start + 1 : start + 4], "big") % max(len(file), 1)
        how = changes[start + 4 : start + 6]
        number = int.from_bytes(how, "big")
        match changes[start] % 5:
            case 0:
                file[where : where + 1] = bytes(byte ^ how[1] for byte in file[where : where + 1])
            case 1:
                file[where : where + 2] = how
            case 2:
                file[where : where + number] = bytes(len(file[where : where + number]))
            case 3:
                page = int.from_bytes(sound[16:18], "big")
                source, target = number * page % len(file or sound), where // page * page
                file[target : target + page] = file[source : source + page]
            case 4:
                del file[where:]
    return bytes(file)


@cache
def _workplace() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@cache
def _sound_snapshot() -> bytes:
    """Build a snapshot of three servers, the last of which has too high counts for a histogram."""
    with tempfile.TemporaryDirectory() as directory:
        times = range(AS_OF - 3 * DAY, AS_OF + 1, DAY // 4)
        observations = [
            (name, at, factor * (at // DAY % 7))
            for name, factor in (("a", 1), ("b", 20), ("c", 2**40))
            for at in times
        ]
        records = [server(name, tags=["x", "\u65e5"], hostname=name * 3) for name in "abc"]
        Path(directory, "servers.ndjson").write_bytes(ndjson(records))
        Path(directory, "observations.csv").write_bytes(csv(observations))
        ran = srvstat(
            *("snapshot", "build", "snapshot.db"),
            *("--servers", "servers.ndjson", "--observations", "observations.csv"),
            cwd=directory,
        )
        assert ran.exit_code == 0, ran.stderr
        return Path(directory, "snapshot.db").read_bytes()


Question = Callable[[SnapshotFile], object]

_SCREEN = Screen(80)


def _comparison(names: Sequence[str], range: Range, at: int | None) -> Question:
    request = compare_request(names, range=range)
    return lambda snapshot: operations.compare(snapshot, request, at=at).to_json()


def _comparison_table(range: Range) -> Question:
    request = compare_request(["a", "c"], range=range)
    return lambda snapshot: tables.comparison(
        operations.view_comparison(snapshot, request), _SCREEN
    )


def _server(name: str) -> Question:
    request = server_reference(name)
    return lambda snapshot: operations.get_server(snapshot, request).to_json()


def _suggestion(snapshot: SnapshotFile) -> None:
    reference = server_reference("x-a")
    try:
        operations.get_server(snapshot, reference)
    except ServerNotFoundError:
        operations.suggestion(snapshot, [reference])


_QUESTIONS: list[Question] = [
    *map(_server, ("a", "b", "cfxId:x-c", "nobody")),
    *(
        _comparison(["a", "cfxId:x-b", "c"], name, at)
        for name, at in product(DAYS, (None, AS_OF - DAY, AS_OF - 5 * DAY))
    ),
    *map(_comparison_table, DAYS),
    lambda snapshot: tables.server_detail(
        operations.view_server(snapshot, server_reference("a")), _SCREEN
    ),
    lambda snapshot: tables.snapshot_info(snapshot.view(), _SCREEN),
    _suggestion,
]

HARNESSES: Mapping[str, Callable[[bytes], None]] = {
    "requests": requests,
    "snapshots": snapshots,
    "text": text,
}
