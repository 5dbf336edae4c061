"""Read server records as NDJSON: the specification's Server detail, and `publishable`.

One invalid record makes the source unusable: without that record, an existing server would be
answered with SERVER_NOT_FOUND.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args
from urllib.parse import urlsplit

from srvstat.contract import wire
from srvstat.contract.instants import parse_instant
from srvstat.contract.responses import Game, Players, ServerDetail
from srvstat.sources.batch import (
    COUNT_RULE,
    IDENTIFIER,
    IDENTIFIER_RULE,
    MAX_PLAYERS,
)
from srvstat.sources.source import Source

_T = TypeVar("_T")

_LINES_PER_CHUNK = 1_000

_GAMES: tuple[str, ...] = get_args(Game)


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A server as in its source. None marks a value to be derived from the observations.

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
    """A field of a record is invalid."""


def read_records(
    source: Source, warn: Callable[[str], None] = lambda _warning: None
) -> list[ServerRecord]:
    """Read all server records, publishable or not. Identical records count once.

    `warn` is called with one line for each field whose values in publishable servers do not have
    the form that the specification names (2.6). The values are kept unchanged (D20).

    Raises SourceError for an invalid record, with its line and field, and as `read_blocks` does.
    """
    found: dict[ServerRecord, int] = {}
    identifier_lines: dict[tuple[str, str], int] = {}
    for line, text in source.read_lines():
        try:
            record = _parse_record(wire.decode_text(text))
        except (wire.JsonError, _FieldError) as error:
            raise source.build_error(line, str(error)) from None
        if record in found:
            continue
        for name, identifier in (("id", record.id), ("cfxId", record.cfx_id)):
            first = identifier_lines.setdefault((name, identifier), line)
            if first != line:
                raise source.build_error(line, f"{name}: the same as in line {first}")
        found[record] = line
    for warning in _describe_oddities(source.title, found):
        warn(warning)
    return list(found)


def draft_records(server_ids: Iterable[str]) -> Iterator[bytes]:
    """Yield a servers file to fill in, in chunks of lines; null marks the values to add."""
    blank: dict[str, Any] = dict.fromkeys(ServerDetail.model_fields)
    ordered = sorted(server_ids)
    for start in range(0, len(ordered), _LINES_PER_CHUNK):
        chunk = ordered[start : start + _LINES_PER_CHUNK]
        yield b"".join(wire.encode(blank | {"id": server_id}) + b"\n" for server_id in chunk)


def _parse_record(value: Any) -> ServerRecord:
    given = _check_object(value, "the record", (*ServerDetail.model_fields, "publishable"))
    players = given.get("players")
    counts = (
        {} if players is None else _check_object(players, "players", tuple(Players.model_fields))
    )
    return ServerRecord(
        id=_require(given, "id", _check_identifier),
        cfx_id=_require(given, "cfxId", _check_identifier),
        game=_require(given, "game", _check_game),
        hostname=_require(given, "hostname", _check_text),
        project_name=_get(given, "projectName", _check_text) or "",
        project_description=_get(given, "projectDescription", _check_text) or "",
        region=_get(given, "region", _check_text) or "",
        players_current=_get(counts, "current", _check_count, within="players."),
        players_max=_get(counts, "max", _check_count, within="players.") or 0,
        tags=_get(given, "tags", _check_texts) or (),
        flags=_get(given, "flags", _check_texts) or (),
        chat_url=_get(given, "chatUrl", _check_text) or "",
        icon_url=_get(given, "iconUrl", _check_text),
        offline=_get(given, "offline", _check_flag) or False,
        first_seen_at=_get(given, "firstSeenAt", _parse_instant),
        updated_at=_get(given, "updatedAt", _parse_instant),
        # Null is invalid: read as true, it could publish a server that must stay hidden.
        publishable=_require(given, "publishable", _check_flag) if "publishable" in given else True,
    )


def _describe_oddities(title: str, lines: Mapping[ServerRecord, int]) -> Iterator[str]:
    """Yield a warning for each field with values in a form that clients may not expect."""
    for what, is_odd, unchanged in _ODDITIES:
        odd = [line for record, line in lines.items() if record.publishable and is_odd(record)]
        if odd:
            servers = "1 server" if len(odd) == 1 else f"{len(odd):,} servers"
            yield f"{title}: {what} in {servers}, first in line {odd[0]}; {unchanged}"


def _is_url(text: str) -> bool:
    """Return whether a text is an absolute http or https URL."""
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


def _check_object(value: Any, what: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _FieldError(f"{what}: must be an object")
    for key in value:
        if key not in known:
            raise _FieldError(f"{wire.quote_value(key)} is not a field of {what}")
    return value


def _require(given: Mapping[str, Any], name: str, check: Callable[[Any], _T]) -> _T:
    value = _get(given, name, check)
    if value is None:
        raise _FieldError(f"{name}: required, but {'null' if name in given else 'missing'}")
    return value


def _get(
    given: Mapping[str, Any], name: str, check: Callable[[Any], _T], *, within: str = ""
) -> _T | None:
    value = given.get(name)
    if value is None:
        return None
    try:
        return check(value)
    except ValueError as error:
        raise _FieldError(f"{within}{name}: {error}") from None


def _check_identifier(value: Any) -> str:
    if not isinstance(value, str) or not IDENTIFIER.fullmatch(value):
        raise ValueError(IDENTIFIER_RULE)
    return value


def _check_game(value: Any) -> str:
    if value not in _GAMES:
        raise ValueError(f"must be {' or '.join(_GAMES)}")
    return str(value)


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    if "\x00" in value:
        raise ValueError("contains U+0000")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("not Unicode text (a lone surrogate)")
    return value


def _check_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("must be an array of strings")
    return tuple(map(_check_text, value))


def _check_count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_PLAYERS:
        raise ValueError(COUNT_RULE)
    return value


def _check_flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("must be true or false")
    return value


def _parse_instant(value: Any) -> int:
    if type(value) not in (int, str):
        raise ValueError("must be an integer or a string")
    return parse_instant(str(value))
