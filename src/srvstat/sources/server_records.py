"""Server records, as sources give them and as a snapshot stores them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import get_args

from srvstat.contract import wire
from srvstat.contract.errors import SourceError, UsageError
from srvstat.contract.responses import Game
from srvstat.contract.wire import MAX_IDENTIFIER_LENGTH

MAX_SOURCE_ID_LENGTH = 512
"""The most characters of a server's identifier in its source."""

_OTHERS = re.compile("[^a-z0-9]+")


GAMES: tuple[str, ...] = get_args(Game)
COMPLETED_FIELDS = ("cfxId", "game", "hostname")
"""The fields that a build completes if a record lacks them."""


class SlugError(ValueError):
    """An identifier has no slug. The message names it."""


def make_slug(identifier: str) -> str:
    """Return an identifier in lower case, with a hyphen for each run of other characters.

    Only ASCII letters and digits are kept, so a letter or digit of another script is an error: two
    identifiers could differ in nothing else. There is no hyphen at the ends.

    Raises SlugError for such a letter, and for a slug that is empty or too long.
    """
    if "\x00" in identifier or any("\ud800" <= character <= "\udfff" for character in identifier):
        raise SlugError(_describe(identifier, "is not Unicode text without U+0000"))
    if any(character.isalnum() and not character.isascii() for character in identifier):
        raise SlugError(_describe(identifier, "has a letter or digit that is not ASCII"))
    slug = _OTHERS.sub("-", identifier.lower()).strip("-")
    if not slug:
        raise SlugError(_describe(identifier, "has no letter or digit"))
    for text, most in ((slug, MAX_IDENTIFIER_LENGTH), (identifier, MAX_SOURCE_ID_LENGTH)):
        if len(text) > most:
            raise SlugError(_describe(identifier, f"is too long, with more than {most} characters"))
    return slug


def _describe(identifier: str, problem: str) -> str:
    return (
        f"{wire.quote_value(identifier)} {problem}, so --ids slug can't convert it; give it"
        " an id in a servers file, with this sourceId"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialRecord:
    """A server as in its source. None marks a value that the source does not have.

    `source_id` is the identifier that the source uses, if it is not the id. A record without an id
    has one. `completed` are the names of the fields that an earlier build completed. Instants are
    Unix milliseconds.
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
    completed: tuple[str, ...] = ()
    publishable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord(PartialRecord):
    """A server with all fields that have no default."""

    id: str
    cfx_id: str
    game: str
    hostname: str


_NAMES = tuple(field.name for field in fields(PartialRecord))


def complete_record(record: PartialRecord, game: str | None) -> ServerRecord:
    """Return a record with the values that it lacks, and their names in `completed`.

    The id is the slug of the source's identifier, the cfxId is the id, and the hostname is the
    identifier as the source writes it.

    Raises SlugError, and UsageError without a game.
    """
    server_id = make_slug(record.source_id or "") if record.id is None else record.id
    if record.game is None and game is None:
        raise UsageError(f"--game: missing; add --game {' or --game '.join(GAMES)}")
    values = {name: getattr(record, name) for name in _NAMES}
    made = {
        "cfxId": ("cfx_id", server_id),
        "game": ("game", game),
        "hostname": ("hostname", record.source_id or server_id),
    }
    added = {name for name, (field, _) in made.items() if values[field] is None}
    values |= {field: value for field, value in made.values() if values[field] is None}
    values["id"] = server_id
    values["completed"] = tuple(sorted({*record.completed, *added}))
    if values["source_id"] == server_id:
        values["source_id"] = None
    return ServerRecord(**values)


def complete_records(
    title: str, records: Iterable[PartialRecord], game: str | None
) -> list[ServerRecord]:
    """Return the records of a source with the values that they lack. Equal ones count once.

    Raises UsageError if a game is missing, and SourceError for an identifier that two servers have,
    which a completed value may cause.
    """
    given = list(records)
    unnamed = sum(record.game is None for record in given)
    if unnamed and game is None:
        servers = "1 server has" if unnamed == 1 else f"{unnamed:,} servers have"
        raise UsageError(
            f"--game: missing, but {servers} no game in {title}; add --game"
            f" {' or --game '.join(GAMES)}"
        )
    try:
        completed = dict.fromkeys(complete_record(record, game) for record in given)
    except SlugError as error:
        raise SourceError(f"{title}: {error}") from None
    check_identifiers(title, completed)
    return list(completed)


def check_identifiers(title: str, records: Iterable[ServerRecord]) -> None:
    """Check that no two records have the same id, cfxId or sourceId.

    Nor may a sourceId be the id of another server: observations could mean either of them.

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


def _list_identifiers(record: ServerRecord) -> Iterator[tuple[str, str]]:
    yield "id", record.id
    yield "cfxId", record.cfx_id
    if record.source_id is not None:
        yield "sourceId", record.source_id


def _describe_conflict(
    name: str, identifier: str, first: ServerRecord, second: ServerRecord
) -> str:
    quoted = wire.quote_value(identifier)
    if name == "id":
        sources = [record.source_id for record in (first, second) if record.source_id is not None]
        origin = f", made from {' and '.join(map(wire.quote_value, sources))}" if sources else ""
        return f"two servers have the id {quoted}{origin}"
    is_completed = any("cfxId" in record.completed for record in (first, second))
    reason = "; the id replaces a cfxId that is missing" if is_completed else ""
    return f"the servers {first.id} and {second.id} have the same {name}: {quoted}{reason}"


def count_completed(records: Iterable[ServerRecord]) -> dict[str, int]:
    """Return in how many records each field was completed, for the fields with any."""
    counts = Counter(name for record in records for name in record.completed)
    return dict(sorted(counts.items()))
