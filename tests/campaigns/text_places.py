"""The places where srvstat displays foreign text, each with its checks.

A place displays texts on a screen, and returns a fault, or None if there is none.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from campaigns.text_checks import (
    find_layout_fault,
    find_text_fault,
    is_harmless,
    remove_colors,
    remove_gaps,
)
from srvstat.cli.main import main
from srvstat.cli.output import STDERR, STDOUT, report
from srvstat.contract import wire
from srvstat.contract.errors import InvalidRequestError, SnapshotError
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.contract.requests import build_compare_request
from srvstat.contract.responses import (
    CompareResponse,
    GrowthFields,
    Players,
    ServerDetail,
    ServerResult,
)
from srvstat.documents.color_codes import remove_color_codes
from srvstat.documents.comparison import ComparedServer, Comparison
from srvstat.documents.history import StepCell
from srvstat.documents.server_detail import ServerTable
from srvstat.documents.server_list import ListedServer, ServerList
from srvstat.documents.snapshot_info import SnapshotInfo
from srvstat.render.screen import Screen
from srvstat.render.tables import render_table
from srvstat.snapshot.read.reader import open_file
from support.descriptors import replace_descriptor

Place = Callable[[Sequence[str], Screen], str | None]

_AS_OF = 1_772_366_400_000
_MOMENT = "2026-03-01T12:00:00.000Z"
_RESULT = ServerResult(
    serverId="srv-1",
    cfxId="abc123",
    range="30d",
    currentPlayers=5,
    averagePlayers=1.5,
    medianPlayers=2.0,
    peakPlayers=9,
    lowestPlayers=0,
    growth=GrowthFields(players=1, percentage=2.0),
    sampleCount=7,
)
_STATISTICS = re.compile(r" 5 +1\.50 +2 +9 +0 +50 (→|->) 51 \+2\.0%( |$)")
_LISTED = re.compile(r" 5 +1 +1 h +99%( |$)")
_NEVER = re.compile(r"(?!)")
_SERVERS_COMPARED = 5
_CELLS = (StepCell(1, 1, 1.0, 1.0), StepCell(0, 1, None, 0.0), StepCell(1, 1, 2.0, 0.5)) * 10
_MAX_LISTED = 25


def show_in_comparison(texts: Sequence[str], screen: Screen) -> str | None:
    """Display texts as hostnames of compared servers."""
    names = _join_evenly(texts, _SERVERS_COMPARED)
    comparison = Comparison(
        CompareResponse(range="30d", data=(_RESULT,) * len(names)),
        tuple(ComparedServer(_RESULT, name, _CELLS, 30, 50, _AS_OF) for name in names),
        Window(_AS_OF - 30 * DAY_MS, _AS_OF),
        _AS_OF,
        "day",
        DAY_MS,
    )
    return _find_table_fault(render_table(comparison, screen), screen, len(names), _STATISTICS)


def show_in_list(texts: Sequence[str], screen: Screen) -> str | None:
    """Display each text as a server in the list of a snapshot, and some as its sources."""
    listed = _drop_surrogates(texts)[:_MAX_LISTED]
    servers = ServerList(
        ListedServer(
            id="srv-1",
            cfx_id=text[:3],
            hostname=text,
            game="game_a",
            region=text[3:],
            offline=False,
            current_players=5,
            sample_count=1,
            first_observed_at=_AS_OF,
            last_observed_at=_AS_OF,
            usual_interval_seconds=3600.0,
            coverage=0.99,
            source_id=text[1:] or None,
            completed=(text,),
        )
        for text in listed
    )
    info = SnapshotInfo(
        as_of=_AS_OF,
        first_observed_at=_AS_OF,
        last_observed_at=_AS_OF,
        observations=1,
        root="0" * 64,
        parent_root="0" * 64,
        covered_from=_AS_OF,
        servers=len(listed),
        games={"game_a": len(listed)},
        fallbacks=0,
        completed=dict.fromkeys(listed[:5], 1),
        sources=tuple(listed[:5]),
        repeated=0,
        conflicting=0,
        rejected=0,
        shards=None,
        matched=len(listed),
        identifiers=servers,
    )
    return _find_table_fault(render_table(info, screen), screen, len(listed), _LISTED)


def show_in_detail(texts: Sequence[str], screen: Screen) -> str | None:
    """Display texts as the fields of a server."""
    *fields, tags, flags = (_drop_surrogates(texts)[start::10] for start in range(10))
    values = ["".join(field) for field in fields]
    names = ("id", "cfxId", "hostname", "projectName", "projectDescription", "region")
    detail = ServerDetail(
        game="game_a",
        players=Players(current=1, max=2),
        tags=tuple(tags),
        flags=tuple(flags),
        chatUrl=values[6],
        iconUrl=values[7],
        offline=False,
        firstSeenAt=_MOMENT,
        updatedAt=_MOMENT,
        **dict(zip(names, values, strict=False)),
    )
    detailed = ServerTable(
        detail,
        as_of=_AS_OF,
        snapshot_as_of=_AS_OF,
        last_observed_at=_AS_OF,
        last_in_snapshot_at=_AS_OF,
        first_seen_at=_AS_OF,
        updated_at=_AS_OF,
        current_is_fallback=False,
        covered_from=None,
        source_id=values[0],
        completed=tuple(tags),
    )
    shown = render_table(detailed, screen)
    # Names are shown without color codes. A description keeps its line breaks.
    values[2:5] = map(remove_color_codes, values[2:5])
    values[4] = values[4].replace("\r", "").replace("\n", "")
    whole = [*values, ", ".join(tags), " ".join(flags)]
    return _find_table_fault(shown, screen, 0, _NEVER) or _find_lost_text(shown, whole, screen)


def _find_lost_text(shown: str, values: Sequence[str], screen: Screen) -> str | None:
    """Return a fault if a value is not displayed completely; its lines may be wrapped."""
    if screen.ascii_only:
        return None
    there = remove_gaps(remove_colors(shown).replace("\n", ""))
    lost = next((value for value in values if remove_gaps(value) not in there), None)
    return None if lost is None else f"it lost a part of {lost!a}"


def _join_evenly(texts: Sequence[str], parts: int) -> list[str]:
    """Join texts to the given number of strings."""
    return ["".join(texts[start::parts]) for start in range(parts)]


def _drop_surrogates(texts: Sequence[str]) -> list[str]:
    """Return the texts that a snapshot can store: those without lone surrogates."""
    return [text for text in texts if text.isprintable() or not _HAS_SURROGATES.search(text)]


_HAS_SURROGATES = re.compile("[\ud800-\udfff]")


def _find_table_fault(shown: str, screen: Screen, rows: int, column: re.Pattern[str]) -> str | None:
    text = remove_colors(shown) if screen.color else shown
    return find_text_fault(text, ascii_only=screen.ascii_only) or find_layout_fault(
        text, screen, rows, column
    )


def show_in_json(texts: Sequence[str], _screen: Screen) -> str | None:
    """Display texts as JSON on a terminal; the JSON must keep its value."""
    body = wire.encode({"data": _drop_surrogates(texts)})
    shown = wire.escape_for_terminal(body)
    text = shown.decode()
    if wrong := sorted(one for one in set(text) if not is_harmless(one)):
        return f"it has {''.join(wrong)!a}"
    return None if json.loads(shown) == json.loads(body) else "its value changed"


def show_in_messages(texts: Sequence[str], screen: Screen) -> str | None:
    """Write texts to standard error, one a line."""
    with _capture_output(ascii_only=screen.ascii_only) as captured:
        report(*texts)
    return _find_line_fault(captured[STDERR], len(texts), screen)


def show_in_reasons(texts: Sequence[str], screen: Screen) -> str | None:
    """Write the reasons why requests and snapshots named by texts are refused."""
    reasons = [reason for text in texts for reason in _list_reasons(text)]
    return show_in_messages(reasons, screen)


def _list_reasons(text: str) -> Iterator[str]:
    asks: list[Callable[[], object]] = [
        lambda: build_compare_request([text, "b"]),
        lambda: build_compare_request(["a", "b"], by=text),
        lambda: build_compare_request(["a", "b"], range=text),
        lambda: open_file(f"{text}.db"),
    ]
    for ask in asks:
        try:
            ask()
        except (InvalidRequestError, SnapshotError) as error:
            yield error.reason


def show_in_errors(texts: Sequence[str], screen: Screen) -> str | None:
    """Pass the first text to two commands that refuse it with a message."""
    text = texts[0]
    commands = [
        ["compare", "--table", "--", text, "b"],
        ["compare", "--table", "a", "b", "--by", text],
        ["compare", "--table", "a", "b", f"--range={text}"],
        ["get", "--table", f"cfxId:{text}"],
        ["get", "--table", "a", "--snapshot", f"{text}.db"],
        ["get", "a", "--at", f"{text} o'clock"],
        ["get", "a", f"--no{text}"],
        [f"no{text}"],
    ]
    faults = (_find_command_fault(command, screen) for command in commands[len(text) % 4 :: 4])
    return next(filter(None, faults), None)


def _find_command_fault(arguments: list[str], screen: Screen) -> str | None:
    with _capture_output(ascii_only=screen.ascii_only) as captured:
        exit_code = main(arguments)
    if exit_code not in {2, 3, 40} or captured[STDOUT]:
        return f"{arguments!a}: exit code {exit_code}, stdout {captured[STDOUT]!r}"
    return _find_line_fault(captured[STDERR], captured[STDERR].count(b"\n"), screen)


def _find_line_fault(output: bytes, lines: int, screen: Screen) -> str | None:
    *whole, rest = output.decode("utf-8").split("\n")
    if len(whole) != lines or rest:
        return f"it has {len(whole)} lines and {rest!r}, expected {lines} lines"
    return find_text_fault("\n".join(whole), ascii_only=screen.ascii_only)


@contextmanager
def _capture_output(*, ascii_only: bool) -> Iterator[dict[int, bytes]]:
    """Capture the output to stdout and stderr, under one of two locales."""
    captured: dict[int, bytes] = {}
    locale = os.environ.get("LC_ALL")
    os.environ["LC_ALL"] = "C" if ascii_only else "C.UTF-8"
    with ExitStack() as stack:
        files = {number: stack.enter_context(tempfile.TemporaryFile()) for number in _DESCRIPTORS}
        try:
            with ExitStack() as replaced:
                for number, file in files.items():
                    replaced.enter_context(replace_descriptor(number, file.fileno()))
                yield captured
        finally:
            for number, file in files.items():
                file.seek(0)
                captured[number] = file.read()
            del os.environ["LC_ALL"]
            os.environ.update({"LC_ALL": locale} if locale is not None else {})


_DESCRIPTORS = (STDOUT, STDERR)

ALL_PLACES: tuple[Place, ...] = (
    show_in_comparison,
    show_in_list,
    show_in_detail,
    show_in_json,
    show_in_messages,
    show_in_reasons,
    show_in_errors,
)


def find_fault(place: Place, texts: Sequence[str], screen: Screen) -> str | None:
    """Display texts in a place; return a fault with the text that causes it."""
    if not (fault := _find_fault(place, texts, screen)):
        return None
    alone = next((text for text in texts if _find_fault(place, [text], screen)), None)
    shown = texts if alone is None else [alone]
    fault = _find_fault(place, shown, screen) or fault
    return f"{fault}: {place.__name__}({shown!a}, {screen})"


def _find_fault(place: Place, texts: Sequence[str], screen: Screen) -> str | None:
    try:
        return place(texts, screen)
    except Exception as error:  # noqa: BLE001 - any exception is a failure
        return f"it raised {error!r:.300}"
