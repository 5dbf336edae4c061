"""Read server records as NDJSON: the specification's Server detail, and keys of our own.

One invalid record makes the source unusable: without that record, an existing server would be
answered with SERVER_NOT_FOUND.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from srvstat.contract import wire
from srvstat.contract.instants import parse_instant
from srvstat.contract.responses import Players, ServerDetail
from srvstat.sources.batch import (
    COUNT_RULE,
    IDENTIFIER,
    IDENTIFIER_RULE,
    MAX_PLAYERS,
)
from srvstat.sources.server_records import (
    COMPLETED_FIELDS,
    GAMES,
    PartialRecord,
    ServerRecord,
)
from srvstat.sources.slugs import MAX_SOURCE_ID_LENGTH
from srvstat.sources.source import Source

_T = TypeVar("_T")

_LINES_PER_CHUNK = 1_000

_OWN_KEYS = ("sourceId", "completed", "publishable")
"""The keys of a record besides those of the specification."""


class _FieldError(ValueError):
    """A field of a record is invalid."""


def read_records(
    source: Source, warn: Callable[[str], None] = lambda _warning: None
) -> list[PartialRecord]:
    """Read all server records, publishable or not. Identical records count once.

    A record may lack the cfxId, the game and the hostname.

    `warn` is called with one line for each field whose values in publishable servers do not have
    the form that the specification names (2.6). The values are kept unchanged (D20).

    Raises SourceError for an invalid record, with its line and field, and as `read_blocks` does.
    """
    found: dict[PartialRecord, int] = {}
    identifier_lines: dict[tuple[str, str | None], int] = {}
    for line, text in source.read_lines():
        try:
            record = _parse_record(wire.decode_text(text), any_id=source.accepts_any_id)
        except (wire.JsonError, _FieldError) as error:
            raise source.build_error(line, str(error)) from None
        if record in found:
            continue
        for name, identifier in (
            ("id", record.id),
            ("cfxId", record.cfx_id),
            ("sourceId", record.source_id),
        ):
            first = identifier_lines.setdefault((name, identifier), line)
            if identifier is not None and first != line:
                raise source.build_error(line, f"{name}: the same as in line {first}")
        found[record] = line
    for warning in _describe_oddities(source.title, found):
        warn(warning)
    return list(found)


def format_records(records: Iterable[ServerRecord]) -> Iterator[bytes]:
    """Yield records as lines of a servers file, in chunks; null marks values to add."""
    blank: dict[str, Any] = dict.fromkeys(ServerDetail.model_fields)
    rest = iter(records)
    while chunk := list(islice(rest, _LINES_PER_CHUNK)):
        yield b"".join(wire.encode(blank | _list_made_fields(record)) + b"\n" for record in chunk)


def _list_made_fields(record: ServerRecord) -> dict[str, Any]:
    """Return the fields of a record that was made from an identifier."""
    made = {
        "id": record.id,
        "game": record.game,
        "cfxId": record.cfx_id,
        "hostname": record.hostname,
        "sourceId": record.source_id,
        "completed": record.completed,
    }
    return {name: value for name, value in made.items() if value}


def _parse_record(value: Any, *, any_id: bool) -> PartialRecord:
    """Return a record; with `any_id`, an id may have any form, and is then the source's."""
    given = _check_object(value, "the record", (*ServerDetail.model_fields, *_OWN_KEYS))
    players = given.get("players")
    counts = (
        {} if players is None else _check_object(players, "players", tuple(Players.model_fields))
    )
    source_id = _get(given, "sourceId", _check_source_id)
    is_any = any_id and source_id is None
    server_id = _require(given, "id", _check_source_id if is_any else _check_identifier)
    is_allowed = IDENTIFIER.fullmatch(server_id) is not None
    return PartialRecord(
        id=server_id if is_allowed else None,
        cfx_id=_get(given, "cfxId", _check_identifier),
        game=_get(given, "game", _check_game),
        hostname=_get(given, "hostname", _check_text),
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
        source_id=source_id if is_allowed else server_id,
        completed=_get(given, "completed", _check_completed) or (),
        # Null is invalid: read as true, it could publish a server that must stay hidden.
        publishable=_require(given, "publishable", _check_flag) if "publishable" in given else True,
    )


def _describe_oddities(title: str, lines: Mapping[PartialRecord, int]) -> Iterator[str]:
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


_ODDITIES: tuple[tuple[str, Callable[[PartialRecord], bool], str], ...] = (
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
    if value not in GAMES:
        raise ValueError(f"must be {' or '.join(GAMES)}")
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


def _check_source_id(value: Any) -> str:
    text = _check_text(value)
    if not 1 <= len(text) <= MAX_SOURCE_ID_LENGTH:
        raise ValueError(f"must have 1 to {MAX_SOURCE_ID_LENGTH} characters")
    return text


def _check_completed(value: Any) -> tuple[str, ...]:
    names = set(_check_texts(value))
    if not names <= set(COMPLETED_FIELDS):
        raise ValueError(f"must be names of {', '.join(COMPLETED_FIELDS)}")
    return tuple(sorted(names))


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
