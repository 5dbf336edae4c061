"""Server records as NDJSON: the fields of the specification's Server detail, and `publishable`.

A bad record refuses the whole source: a server lost here would answer SERVER_NOT_FOUND.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args
from urllib.parse import urlsplit

from srvstat.contract import wire
from srvstat.contract.instants import parse_instant
from srvstat.contract.responses import Game, Players, ServerDetail
from srvstat.sources.batch import (
    COUNT_NEEDED,
    IDENTIFIER,
    IDENTIFIER_NEEDED,
    MAX_PLAYERS,
)
from srvstat.sources.source import Source

_T = TypeVar("_T")

_LINES_A_PIECE = 1_000

_GAMES: tuple[str, ...] = get_args(Game)


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A server as its source tells it; None where that leaves a value to the observations.

    Instants are Unix milliseconds.
    """

    id: str
    cfx_id: str
    game: str
    hostname: str
    project_name: str
    project_description: str
    region: str
    players_current: int | None
    players_max: int
    tags: tuple[str, ...]
    flags: tuple[str, ...]
    chat_url: str
    icon_url: str | None
    offline: bool
    first_seen_at: int | None
    updated_at: int | None
    publishable: bool


class _FieldError(ValueError):
    """A field of a record is not what it must be."""


def read(source: Source, warn: Callable[[str], None] = lambda _warning: None) -> list[ServerRecord]:
    """Read all server records, publishable or not; identical ones collapse.

    `warn` takes one line for each field that some publishable servers have in another form than the
    specification says (2.6). What a source holds is served unchanged (D20).

    Raises SourceError, with the line and the field, for a bad record and for what
    `Source.blocks` refuses.
    """
    found: dict[ServerRecord, int] = {}
    find_line: dict[tuple[str, str], int] = {}
    for line, text in source.lines():
        try:
            record = _record(wire.decode_text(text))
        except (wire.JsonError, _FieldError) as error:
            raise source.refuse(line, str(error)) from None
        if record in found:
            continue
        for name, identifier in (("id", record.id), ("cfxId", record.cfx_id)):
            first = find_line.setdefault((name, identifier), line)
            if first != line:
                raise source.refuse(line, f"{name}: line {first} has the same one")
        found[record] = line
    for warning in _warnings(source.title, found):
        warn(warning)
    return list(found)


def draft(server_ids: Iterable[str]) -> Iterator[bytes]:
    """Write the lines of a servers file to fill in, some at a time: null stands for what to add."""
    blank: dict[str, Any] = dict.fromkeys(ServerDetail.model_fields)
    ordered = sorted(server_ids)
    for start in range(0, len(ordered), _LINES_A_PIECE):
        piece = ordered[start : start + _LINES_A_PIECE]
        yield b"".join(wire.encode(blank | {"id": server_id}) + b"\n" for server_id in piece)


def _record(value: Any) -> ServerRecord:
    given = _members(value, "the record", (*ServerDetail.model_fields, "publishable"))
    players = given.get("players")
    counts = {} if players is None else _members(players, "players", tuple(Players.model_fields))
    return ServerRecord(
        id=_required(given, "id", _identifier),
        cfx_id=_required(given, "cfxId", _identifier),
        game=_required(given, "game", _game),
        hostname=_required(given, "hostname", _text),
        project_name=_optional(given, "projectName", _text) or "",
        project_description=_optional(given, "projectDescription", _text) or "",
        region=_optional(given, "region", _text) or "",
        players_current=_optional(counts, "current", _count, within="players."),
        players_max=_optional(counts, "max", _count, within="players.") or 0,
        tags=_optional(given, "tags", _texts) or (),
        flags=_optional(given, "flags", _texts) or (),
        chat_url=_optional(given, "chatUrl", _text) or "",
        icon_url=_optional(given, "iconUrl", _text),
        offline=_optional(given, "offline", _claim) or False,
        first_seen_at=_optional(given, "firstSeenAt", _instant),
        updated_at=_optional(given, "updatedAt", _instant),
        # A null could mean either, and the wrong guess would publish what must not be.
        publishable=_required(given, "publishable", _claim) if "publishable" in given else True,
    )


def _warnings(title: str, find_line: Mapping[ServerRecord, int]) -> Iterator[str]:
    """Say which fields do not have the form that clients may expect, in how many servers."""
    for what, is_odd, unchanged in _ODDITIES:
        odd = [line for record, line in find_line.items() if record.publishable and is_odd(record)]
        if odd:
            servers = "1 server" if len(odd) == 1 else f"{len(odd):,} servers"
            yield f"{title}: {what} in {servers}, first in line {odd[0]}; {unchanged}"


def _is_url(text: str) -> bool:
    """Say whether a text is an absolute http or https URL."""
    if not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


_ODDITIES: tuple[tuple[str, Callable[[ServerRecord], bool], str], ...] = (
    (
        "a chatUrl that is not an absolute http(s) URL",
        lambda record: record.chat_url != "" and not _is_url(record.chat_url),
        "it is served unchanged",
    ),
    (
        "an iconUrl that is not an absolute http(s) URL",
        lambda record: record.icon_url is not None and not _is_url(record.icon_url),
        "it is served unchanged",
    ),
    (
        "flags that are not upper case",
        lambda record: any(flag != flag.upper() for flag in record.flags),
        "they are served unchanged",
    ),
)


def _members(value: Any, what: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _FieldError(f"{what}: an object is needed")
    for key in value:
        if key not in known:
            raise _FieldError(f"{wire.quote_value(key)} is not a field of {what}")
    return value


def _required(given: Mapping[str, Any], name: str, read_value: Callable[[Any], _T]) -> _T:
    found = _optional(given, name, read_value)
    if found is None:
        raise _FieldError(f"{name}: {'null' if name in given else 'missing'}, and needed")
    return found


def _optional(
    given: Mapping[str, Any], name: str, read_value: Callable[[Any], _T], *, within: str = ""
) -> _T | None:
    value = given.get(name)
    if value is None:
        return None
    try:
        return read_value(value)
    except ValueError as error:
        raise _FieldError(f"{within}{name}: {error}") from None


def _identifier(value: Any) -> str:
    if not isinstance(value, str) or not IDENTIFIER.fullmatch(value):
        raise ValueError(IDENTIFIER_NEEDED)
    return value


def _game(value: Any) -> str:
    if value not in _GAMES:
        raise ValueError(f"{' or '.join(_GAMES)} is needed")
    return str(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is needed")
    if "\x00" in value:
        raise ValueError("holds the character U+0000")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("holds half a character (a lone surrogate)")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("a list of texts is needed")
    return tuple(map(_text, value))


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_PLAYERS:
        raise ValueError(COUNT_NEEDED)
    return value


def _claim(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("true or false is needed")
    return value


def _instant(value: Any) -> int:
    if type(value) not in (int, str):
        raise ValueError("an integer or a text is needed")
    return parse_instant(str(value))
