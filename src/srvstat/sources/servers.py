"""Read server records as NDJSON: the specification's Server detail plus keys of our own.

A single invalid record makes the source unusable. Without that record, requests for an existing
server would return SERVER_NOT_FOUND.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.contract.responses import GAMES, Players, ServerDetail
from srvstat.contract.time import format_instant, parse_instant
from srvstat.contract.wire import MAX_IDENTIFIER_LENGTH
from srvstat.sources.source import Source
from srvstat.sources.values import COUNT_RULE, IDENTIFIER, IDENTIFIER_RULE, MAX_PLAYERS, is_utf8

MAX_SOURCE_ID_LENGTH = 512
"""The maximum length of a server's identifier in its source."""

SOURCE_ID_RULE = f"must be 1 to {MAX_SOURCE_ID_LENGTH} characters of Unicode without U+0000"

_OTHERS = re.compile("[^a-z0-9]+")
_HASH_DIGITS = (0, 6, 16, 64)
"""The number of hexadecimal hash digits in an id; more digits resolve collisions."""
_LEAST_DIGITS = 8
"""The number of hash digits in an id made from punctuation only."""


_COMPLETED = {"cfxId": "cfx_id", "game": "game", "hostname": "hostname"}
"""The fields that a build fills in if a record lacks them, with their attributes."""


def make_slug(identifier: str) -> str:
    """Convert an identifier to lower-case ASCII, with a hyphen for each run of other characters.

    There are no hyphens at the ends. The result may be empty.
    """
    if not identifier.isascii():
        from anyascii import anyascii  # noqa: PLC0415 - few sources need it

        identifier = anyascii(identifier)
    return _cut_slug(_OTHERS.sub("-", identifier.lower()), "")


def _cut_slug(slug: str, suffix: str) -> str:
    return slug[: MAX_IDENTIFIER_LENGTH - len(suffix)].strip("-") + suffix


def choose_ids(
    identifiers: Collection[str], used: Container[str], *, converts_all: bool
) -> dict[str, str]:
    """Choose an id for each server identifier: itself if the contract allows it, otherwise a slug.

    With `converts_all`, every id is a slug. A slug that equals another slug, an id, or one of
    `used` gets a hash, so that no id depends on the order of the identifiers.
    """
    ids, slugs = dict[str, str](), dict[str, str]()
    for identifier in identifiers:
        is_allowed = not converts_all and IDENTIFIER.fullmatch(identifier)
        slug = identifier if is_allowed else make_slug(identifier)
        (ids if slug == identifier and slug not in used else slugs)[identifier] = slug
    for digits in _HASH_DIGITS:
        made = {name: _add_hash(slug, name, digits) for name, slug in slugs.items()}
        given, taken = Counter(made.values()), set(ids.values())
        ids |= {
            name: made_id
            for name, made_id in made.items()
            if given[made_id] == 1 and made_id not in taken and made_id not in used
        }
        slugs = {name: slug for name, slug in slugs.items() if name not in ids}
    return ids


def _add_hash(slug: str, identifier: str, digits: int) -> str:
    digits = digits if slug else max(digits, _LEAST_DIGITS)
    suffix = f"-{sha256(identifier.encode()).hexdigest()[:digits]}" if digits else ""
    return _cut_slug(slug or "server", suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialRecord:
    """A server as described in its source. None marks a value that the source lacks.

    - `source_id`: the server's identifier in the source, if it differs from the id. A record
      without an id has a source id.
    - `other_source_ids`: further identifiers of a server that was renamed or restarted.
    - `completed`: the fields that an earlier build filled in.
    - `publishable`: whether the server is public.

    Instants are Unix milliseconds.
    """

    id: str | None = None
    cfx_id: str | None = None
    game: str | None = None
    hostname: str | None = None
    project_name: str = ""
    project_description: str = ""
    region: str = ""
    players_current: int | None = None
    players_max: int = 0
    tags: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    chat_url: str = ""
    icon_url: str | None = None
    offline: bool = False
    first_seen_at: int | None = None
    updated_at: int | None = None
    source_id: str | None = None
    other_source_ids: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    publishable: bool = True

    @property
    def source_ids(self) -> tuple[str, ...]:
        """All identifiers used in the source; none if the source uses the id."""
        return () if self.source_id is None else (self.source_id, *self.other_source_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord(PartialRecord):
    """A server with values for all required fields."""

    id: str
    cfx_id: str
    game: str
    hostname: str


def complete_record(record: PartialRecord, game: str | None) -> ServerRecord:
    """Fill in the missing values of a record that has an id, and add their fields to `completed`.

    The cfxId defaults to the id, the hostname to the identifier in the source, and the game to
    `game`. The game is empty if `game` is None.
    """
    assert record.id, "no id"  # noqa: S101 - complete_records gives one
    made = {"cfx_id": record.id, "game": game, "hostname": record.source_id or record.id}
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    values["game"] = record.game or None
    lacking = {key: name for key, name in _COMPLETED.items() if values[name] is None}
    added = {key for key, name in lacking.items() if made[name] is not None}
    values |= {name: made[name] or "" for name in lacking.values()}
    values["completed"] = tuple(sorted({*record.completed, *added}))
    if record.source_ids == (record.id,):
        values["source_id"] = None
    return ServerRecord(**values)


def complete_records(
    title: str, records: Iterable[PartialRecord], game: str | None
) -> list[ServerRecord]:
    """Fill in the missing values of a source's records. Identical records count once.

    A record without an id gets a slug of its source id.

    Raises SourceError if two servers have the same identifier, even if it was filled in.
    """
    given = list(records)
    used = {record.id for record in given if record.id}
    unnamed = {record.source_id: None for record in given if not record.id and record.source_id}
    ids = choose_ids(unnamed, used, converts_all=True)
    named = (
        record if record.id else replace(record, id=ids[record.source_id or ""]) for record in given
    )
    completed = dict.fromkeys(complete_record(record, game) for record in named)
    check_identifiers(title, completed)
    return list(completed)


def check_identifiers(title: str, records: Iterable[ServerRecord]) -> None:
    """Check that no two records share an id, cfxId or sourceId.

    A sourceId must not be another server's id either, because observations could mean either
    server.

    Raises SourceError, which names both servers.
    """
    owners: dict[tuple[str, str], ServerRecord] = {}
    for record in records:
        for name, identifier in _list_identifiers(record):
            other = owners.setdefault((name, identifier), record)
            if other is not record:
                raise SourceError(f"{title}: {_describe_conflict(name, identifier, other, record)}")
    for record in owners.values():
        other = owners.get(("id", record.source_id or ""), record)
        if other.id != record.id:
            raise SourceError(
                f"{title}: the sourceId of server {record.id} is the id of another server:"
                f" {wire.quote_value(record.source_id)}"
            )


def _list_identifiers(record: PartialRecord) -> Iterator[tuple[str, str]]:
    named = (("id", record.id), ("cfxId", record.cfx_id))
    yield from ((name, identifier) for name, identifier in named if identifier is not None)
    yield from (("sourceId", identifier) for identifier in record.source_ids)


def _describe_conflict(
    name: str, identifier: str, first: ServerRecord, second: ServerRecord
) -> str:
    quoted = wire.quote_value(identifier)
    if name == "id":
        sources = [record.source_id for record in (first, second) if record.source_id is not None]
        origin = f", made from {' and '.join(map(wire.quote_value, sources))}" if sources else ""
        return f"two servers have the id {quoted}{origin}"
    is_completed = any("cfxId" in record.completed for record in (first, second))
    reason = "; a missing cfxId defaults to the id" if is_completed else ""
    return f"the servers {first.id} and {second.id} have the same {name}: {quoted}{reason}"


def count_completed(records: Iterable[ServerRecord]) -> dict[str, int]:
    """Return the number of records in which each field was filled in; only fields with any."""
    return dict(sorted(Counter(name for each in records for name in each.completed).items()))


_T = TypeVar("_T")


_LINES_PER_CHUNK = 1_000
_MEMBERS = (*ServerDetail.list_members(), "sourceId", "completed", "publishable")
"""The keys of a record: the keys in the specification and three of our own."""


class FieldError(ValueError):
    """A field of a record is invalid."""


def check_object(value: Any, what: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    """Check that a value is an object with known keys only.

    Raises FieldError if it is not.
    """
    if not isinstance(value, dict):
        raise FieldError(f"{what}: must be an object")
    for key in value:
        if key not in known:
            fields = ", ".join(known)
            problem = f"{wire.quote_value(key)} is not a field of {what}"
            raise FieldError(f"{problem}; use one of {fields}")
    return value


def require_field(given: Mapping[str, Any], name: str, check: Callable[[Any], _T]) -> _T:
    """Return the checked value of a required field.

    Raises FieldError if the field is missing, null or invalid.
    """
    value = get_field(given, name, check)
    if value is None:
        raise FieldError(f"{name}: required, but {'null' if name in given else 'missing'}")
    return value


def get_field(
    given: Mapping[str, Any], name: str, check: Callable[[Any], _T], *, within: str = ""
) -> _T | None:
    """Return the checked value of a field, or None if it is missing or null.

    `within` is the path of the object, for messages.

    Raises FieldError if the value is invalid.
    """
    value = given.get(name)
    if value is None:
        return None
    try:
        return check(value)
    except ValueError as error:
        raise FieldError(f"{within}{name}: {error}") from None


def check_identifier(value: Any) -> str:
    """Check that the contract allows an identifier.

    Raises ValueError if it does not.
    """
    if not isinstance(value, str) or not IDENTIFIER.fullmatch(value):
        raise ValueError(IDENTIFIER_RULE)
    return value


def check_game(value: Any) -> str:
    """Check that a value is a game of the contract.

    Raises ValueError if it is not.
    """
    if value not in GAMES:
        raise ValueError(f"must be {' or '.join(GAMES)}")
    return str(value)


def check_text(value: Any) -> str:
    """Check that a value is Unicode text that a snapshot can store.

    Raises ValueError if it is not.
    """
    if not isinstance(value, str):
        raise ValueError("must be a string")
    if "\x00" in value:
        raise ValueError("contains U+0000")
    if not is_utf8(value):
        raise ValueError("not Unicode text (a lone surrogate)")
    return value


def check_texts(value: Any) -> tuple[str, ...]:
    """Check that a value is an array of texts.

    Raises ValueError if it is not.
    """
    if not isinstance(value, list):
        raise ValueError("must be an array of strings")
    return tuple(map(check_text, value))


def check_source_id(value: Any) -> str:
    """Check that a value is valid as a server's identifier in its source.

    Raises ValueError if it is not.
    """
    text = check_text(value)
    if not 1 <= len(text) <= MAX_SOURCE_ID_LENGTH:
        raise ValueError(f"must have 1 to {MAX_SOURCE_ID_LENGTH} characters")
    return text


def is_source_id(text: str) -> bool:
    """Return whether a text is valid as a server's identifier in its source."""
    try:
        return check_source_id(text) == text
    except ValueError:
        return False


def _check_source_ids(value: Any) -> tuple[str, ...]:
    """Check one or several source identifiers, and drop duplicates.

    Raises ValueError for an invalid identifier.
    """
    return tuple(dict.fromkeys(map(check_source_id, value if isinstance(value, list) else [value])))


def check_completed(value: Any) -> tuple[str, ...]:
    """Check the names of completed fields; return them sorted, without duplicates.

    Raises ValueError if a name is invalid.
    """
    names = set(check_texts(value))
    if not names <= _COMPLETED.keys():
        raise ValueError(f"must be names of {', '.join(_COMPLETED)}")
    return tuple(sorted(names))


def check_count(value: Any) -> int:
    """Check a number of players.

    Raises ValueError if the number is invalid.
    """
    if type(value) is not int or not 0 <= value <= MAX_PLAYERS:
        raise ValueError(COUNT_RULE)
    return value


def check_flag(value: Any) -> bool:
    """Check that a value is Boolean.

    Raises ValueError if it is not.
    """
    if type(value) is not bool:
        raise ValueError("must be true or false")
    return value


def check_instant(value: Any) -> int:
    """Return an instant in Unix milliseconds.

    Raises ValueError if the value is not an instant.
    """
    if type(value) not in (int, str):
        raise ValueError("must be an integer or a string")
    return parse_instant(str(value))


_FIELDS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("cfxId", "cfx_id", check_identifier),
    ("game", "game", check_game),
    ("hostname", "hostname", check_text),
    ("projectName", "project_name", check_text),
    ("projectDescription", "project_description", check_text),
    ("region", "region", check_text),
    ("tags", "tags", check_texts),
    ("flags", "flags", check_texts),
    ("chatUrl", "chat_url", check_text),
    ("iconUrl", "icon_url", check_text),
    ("offline", "offline", check_flag),
    ("firstSeenAt", "first_seen_at", check_instant),
    ("updatedAt", "updated_at", check_instant),
    ("completed", "completed", check_completed),
)
"""The keys, attributes and checks of the optional fields."""


def read_records(source: Source) -> list[PartialRecord]:
    """Read all server records, public or not. Identical records count once.

    A record may lack the cfxId, the game and the hostname.

    Warns about each field whose values in public servers don't have the form that the specification
    describes (2.6). The values are kept unchanged (D20).

    Raises SourceError for an invalid record, with its line and field, and the errors of
    `read_blocks`.
    """
    found: dict[PartialRecord, int] = {}
    identifier_lines: dict[tuple[str, str], int] = {}
    for line, text in source.read_lines():
        try:
            record = _parse_record(wire.decode_text(text), any_id=source.accepts_any_id)
        except (wire.JsonError, FieldError) as error:
            raise source.build_error(line, str(error)) from None
        if record in found:
            continue
        for name, identifier in _list_identifiers(record):
            first = identifier_lines.setdefault((name, identifier), line)
            if first != line:
                raise source.build_error(line, f"{name}: the same as in line {first}")
        found[record] = line
    if source.on_warning:
        for warning in _describe_oddities(source.title, found):
            source.on_warning(warning)
    return list(found)


def format_records(records: Iterable[ServerRecord]) -> Iterator[bytes]:
    """Yield records as lines of a servers file, in chunks.

    Null marks empty values and values to be filled in.
    """
    blank: dict[str, Any] = dict.fromkeys(ServerDetail.list_members())
    rest = iter(records)
    while chunk := list(islice(rest, _LINES_PER_CHUNK)):
        yield b"".join(wire.encode(blank | _list_fields(record)) + b"\n" for record in chunk)


def _list_fields(record: ServerRecord) -> dict[str, Any]:
    """Return the fields of a record, without default values."""
    # An empty hostname or iconUrl is not a missing value.
    found: dict[str, Any] = {"id": record.id, "iconUrl": record.icon_url}
    if record.source_id is not None:
        found["sourceId"] = record.source_ids if record.other_source_ids else record.source_id
    for name, attribute, check in _FIELDS:
        value = getattr(record, attribute)
        if check is check_instant and value is not None:
            value = format_instant(value)
        if value or name == "hostname":
            found[name] = value
    counts = {"current": record.players_current, "max": record.players_max or None}
    if counts := {name: count for name, count in counts.items() if count is not None}:
        found["players"] = counts
    if not record.publishable:
        found["publishable"] = False
    return found


def _parse_record(value: Any, *, any_id: bool) -> PartialRecord:
    """Parse a record. With `any_id`, an id of any form is taken as the source's identifier."""
    given = check_object(value, "the record", _MEMBERS)
    players = given.get("players")
    counts = {} if players is None else check_object(players, "players", (*Players.model_fields,))
    source_ids = get_field(given, "sourceId", _check_source_ids) or ()
    is_any = any_id and not source_ids
    server_id = require_field(given, "id", check_source_id if is_any else check_identifier)
    found = {attribute: get_field(given, name, check) for name, attribute, check in _FIELDS}
    for name in ("current", "max"):
        found[f"players_{name}"] = get_field(counts, name, check_count, within="players.")
    if "publishable" in given:
        # Null is rejected: if it counted as true, it could publish a server that must stay hidden.
        found["publishable"] = require_field(given, "publishable", check_flag)
    found |= {"source_id": source_ids[0], "other_source_ids": source_ids[1:]} if source_ids else {}
    found["id" if IDENTIFIER.fullmatch(server_id) else "source_id"] = server_id
    return PartialRecord(**{name: each for name, each in found.items() if each is not None})


def _describe_oddities(title: str, lines: Mapping[PartialRecord, int]) -> Iterator[str]:
    """Yield a warning for each field with values in a form that clients may not expect."""
    for what, is_odd in _ODDITIES.items():
        odd = [line for record, line in lines.items() if record.publishable and is_odd(record)]
        if odd:
            servers = "1 server" if len(odd) == 1 else f"{len(odd):,} servers"
            yield f"{title}: {what} in {servers}, first in line {odd[0]}; served unchanged"


def _is_url(text: str) -> bool:
    """Return whether a text is an absolute http or https URL."""
    if not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


_ODDITIES: Mapping[str, Callable[[PartialRecord], bool]] = {
    "a chatUrl that is not an absolute http(s) URL": lambda record: (
        record.chat_url != "" and not _is_url(record.chat_url)
    ),
    "an iconUrl that is not an absolute http(s) URL": lambda record: (
        record.icon_url is not None and not _is_url(record.icon_url)
    ),
    "flags that are not upper case": lambda record: any(
        flag != flag.upper() for flag in record.flags
    ),
}
