"""The places where srvstat shows foreign text, each with what must be true of it there.

A place takes texts and a screen, shows the texts, and says what is wrong, if something is.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from campaigns.text_checks import (
    HARMLESS,
    fault_of_layout,
    fault_of_text,
    without_colours,
    without_gaps,
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
from srvstat.documents.views import (
    ComparisonView,
    ListedServer,
    ServerDetailView,
    ServerView,
    SnapshotView,
)
from srvstat.render import tables
from srvstat.render.comparison import comparison
from srvstat.render.screen import Screen
from srvstat.snapshot.read.reader import open_file

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
_FIGURES = re.compile(r" 5 +1\.50 +2 +9 +0 +\+1 +\+2\.0%( |$)")
_GAME = re.compile(r" game_a( |$)")
_NEVER = re.compile(r"(?!)")
_SERVERS_COMPARED = 5
_MOST_LISTED = 25


def in_a_comparison(texts: Sequence[str], screen: Screen) -> str | None:
    """Show texts as hostnames of compared servers."""
    names = _spread(texts, _SERVERS_COMPARED)
    view = ComparisonView(
        CompareResponse(range="30d", data=(_RESULT,) * len(names)),
        tuple(ServerView(_RESULT, name, (1.0, None, 2.0) * 10, 30, 50, _AS_OF) for name in names),
        Window(_AS_OF - 30 * DAY_MS, _AS_OF),
        _AS_OF,
        DAY_MS,
    )
    return _fault_of_table(comparison(view, screen), screen, len(names), _FIGURES)


def in_a_list(texts: Sequence[str], screen: Screen) -> str | None:
    """Show each text as a server in the list of a snapshot, and some as its sources."""
    listed = _unicode(texts)[:_MOST_LISTED]
    view = SnapshotView(
        as_of=_AS_OF,
        first_observed_at=_AS_OF,
        last_observed_at=_AS_OF,
        observations=1,
        root="0" * 64,
        server_count=len(listed),
        games={"game_a": len(listed)},
        servers=tuple(
            ListedServer(
                id="srv-1",
                cfx_id=text[:3],
                game="game_a",
                hostname=text,
                observations=1,
                first_observed_at=_AS_OF,
                last_observed_at=_AS_OF,
            )
            for text in listed
        ),
        fallbacks=0,
        sources=tuple(listed[:5]),
        repeated=0,
        conflicting=0,
        rejected=0,
    )
    return _fault_of_table(tables.snapshot_info(view, screen), screen, len(listed), _GAME)


def in_a_detail(texts: Sequence[str], screen: Screen) -> str | None:
    """Show texts as the fields of a server, in turn."""
    *fields, tags, flags = (_unicode(texts)[start::10] for start in range(10))
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
    view = ServerDetailView(
        detail, _AS_OF, _AS_OF, _AS_OF, _AS_OF, _AS_OF, current_is_fallback=False
    )
    shown = tables.server_detail(view, screen)
    # The line breaks of a description stay line breaks.
    values[4] = values[4].replace("\r", "").replace("\n", "")
    whole = [*values, ", ".join(tags), " ".join(flags)]
    return _fault_of_table(shown, screen, 0, _NEVER) or _lost(shown, whole, screen)


def _lost(shown: str, values: Sequence[str], screen: Screen) -> str | None:
    """Say which value is not there as a whole, wherever its lines break."""
    if screen.ascii_only:
        return None
    there = without_gaps(without_colours(shown).replace("\n", ""))
    lost = next((value for value in values if without_gaps(value) not in there), None)
    return None if lost is None else f"it lost some of {lost!a}"


def _spread(texts: Sequence[str], parts: int) -> list[str]:
    """Join texts to so many."""
    return ["".join(texts[start::parts]) for start in range(parts)]


def _unicode(texts: Sequence[str]) -> list[str]:
    """Return the texts that a snapshot can hold: those without lone surrogates."""
    return [text for text in texts if text.isprintable() or not _HAS_SURROGATES.search(text)]


_HAS_SURROGATES = re.compile("[\ud800-\udfff]")


def _fault_of_table(shown: str, screen: Screen, rows: int, column: re.Pattern[str]) -> str | None:
    text = without_colours(shown) if screen.color else shown
    return fault_of_text(text, ascii_only=screen.ascii_only) or fault_of_layout(
        text, screen, rows, column
    )


def in_json(texts: Sequence[str], _screen: Screen) -> str | None:
    """Show texts in JSON on a terminal, whose value stays the same."""
    body = wire.encode({"data": _unicode(texts)})
    shown = wire.escape_for_terminal(body)
    text = shown.decode()
    if not set(text) <= HARMLESS:
        return f"it has {''.join(sorted(set(text) - HARMLESS))!a}"
    return None if json.loads(shown) == json.loads(body) else "it has another value"


def in_messages(texts: Sequence[str], screen: Screen) -> str | None:
    """Tell texts on standard error, each on a line of its own."""
    with _caught(ascii_only=screen.ascii_only) as caught:
        report(*texts)
    return _fault_of_lines(caught[STDERR], len(texts), screen)


def in_reasons(texts: Sequence[str], screen: Screen) -> str | None:
    """Tell why requests and snapshots that texts name are refused."""
    reasons = [reason for text in texts for reason in _reasons(text)]
    return in_messages(reasons, screen)


def _reasons(text: str) -> Iterator[str]:
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


def in_errors(texts: Sequence[str], screen: Screen) -> str | None:
    """Give the first text to two commands that refuse it, where a person reads why."""
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
    faults = (_fault_of_command(command, screen) for command in commands[len(text) % 4 :: 4])
    return next(filter(None, faults), None)


def _fault_of_command(arguments: list[str], screen: Screen) -> str | None:
    with _caught(ascii_only=screen.ascii_only) as caught:
        exit_code = main(arguments)
    if exit_code not in {2, 3, 40} or caught[STDOUT]:
        return f"{arguments!a} ended with {exit_code} and said {caught[STDOUT]!r}"
    return _fault_of_lines(caught[STDERR], caught[STDERR].count(b"\n"), screen)


def _fault_of_lines(told: bytes, lines: int, screen: Screen) -> str | None:
    *whole, rest = told.decode("utf-8").split("\n")
    if len(whole) != lines or rest:
        return f"it has {len(whole)} lines and {rest!r}, not {lines}"
    return fault_of_text("\n".join(whole), ascii_only=screen.ascii_only)


@contextmanager
def _caught(*, ascii_only: bool) -> Iterator[dict[int, bytes]]:
    """Catch what is written to both standard descriptors, under one of two locales."""
    caught: dict[int, bytes] = {}
    locale = os.environ.get("LC_ALL")
    os.environ["LC_ALL"] = "C" if ascii_only else "C.UTF-8"
    with ExitStack() as stack:
        files = {number: stack.enter_context(tempfile.TemporaryFile()) for number in _WRITTEN}
        kept = {number: os.dup(number) for number in _WRITTEN}
        for number, file in files.items():
            os.dup2(file.fileno(), number)
        try:
            yield caught
        finally:
            for number, file in files.items():
                os.dup2(kept[number], number)
                os.close(kept[number])
                file.seek(0)
                caught[number] = file.read()
            del os.environ["LC_ALL"]
            os.environ.update({"LC_ALL": locale} if locale is not None else {})


_WRITTEN = (STDOUT, STDERR)

ALL_PLACES: tuple[Place, ...] = (
    in_a_comparison,
    in_a_list,
    in_a_detail,
    in_json,
    in_messages,
    in_reasons,
    in_errors,
)


def find_fault(place: Place, texts: Sequence[str], screen: Screen) -> str | None:
    """Show texts in a place, and tell what is wrong and of which text."""
    if not (fault := _fault(place, texts, screen)):
        return None
    alone = next((text for text in texts if _fault(place, [text], screen)), None)
    shown = texts if alone is None else [alone]
    fault = _fault(place, shown, screen) or fault
    return f"{fault}: {place.__name__}({shown!a}, {screen})"


def _fault(place: Place, texts: Sequence[str], screen: Screen) -> str | None:
    try:
        return place(texts, screen)
    except Exception as error:  # noqa: BLE001 - whatever comes out is a failure
        return f"it raised {error!r:.300}"
