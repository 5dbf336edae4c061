"""Map the identifiers of sources to servers, and the records of servers to rows and back."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import count, filterfalse
from types import MappingProxyType

from srvstat.contract import wire
from srvstat.contract.errors import SourceError, UsageError
from srvstat.contract.responses import GAMES
from srvstat.snapshot.read.file import read_texts
from srvstat.snapshot.rows import ServerRow
from srvstat.sources import servers
from srvstat.sources.registry import load_record_reader
from srvstat.sources.source import Source
from srvstat.sources.values import IDENTIFIER, IDENTIFIER_RULE

NOT_LISTED = 0
NOT_PUBLISHABLE = -1
MALFORMED = -2
EMPTY = -3

SKIP_REASONS = {NOT_LISTED: "not in the servers file", NOT_PUBLISHABLE: "not publishable"}
"""Why the observations of a server are skipped, by the code that a roster has instead of a key."""

NOT_IN_SNAPSHOT = "not in the snapshot"
"""The reason of an update in place of "not in the servers file"."""

_MAX_NAMED = 3
"""More identifiers would hide the option that adds them."""

MALFORMED_REASON = f"serverId: {IDENTIFIER_RULE}"

REJECT_REASONS = {MALFORMED: MALFORMED_REASON, EMPTY: "serverId: empty"}
"""Why the rows of an identifier are rejected, by the code that a roster has instead of a key."""


class Roster(dict[str, int]):
    """Maps each identifier to the key of its server, or to a code below 1 if it has none.

    Keys are 1, 2, 3 …; servers of `keys` have theirs already. An identifier is judged when it is
    first looked up. It is the sourceId of a record, the id of one or, with `uses_slugs`, a text
    whose slug is the id. With `new_game`, any other identifier becomes a server with that game; it
    is empty as long as it is missing.
    With `uses_slugs`, servers `found_by_slug` have no other identifier than their sourceId.

    `how_to_add` says how the servers of unknown identifiers are added, for messages. `warnings` are
    about the source of the records.

    A look-up raises SourceError if two identifiers have one slug, or if one that becomes a server
    has no slug or the cfxId of another server; UsageError if one becomes a server without a game.
    So a person hears of an unreadable file before the game.
    """

    def __init__(  # noqa: PLR0913 - what each of its users knows of servers
        self,
        records: Sequence[servers.ServerRecord],
        *,
        uses_slugs: bool = False,
        new_game: str | None = None,
        keys: Mapping[str, int] = MappingProxyType({}),
        found_by_slug: Collection[str] = (),
        how_to_add: str = "",
        warnings: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.warnings = warnings
        self._how_to_add = how_to_add
        self._given = {record.id: record for record in records if record.publishable}
        self.skip_reasons = dict(SKIP_REASONS)
        self._free_keys = filterfalse(set(keys.values()).__contains__, count(1))
        self.server_keys = {
            server_id: keys[server_id] if server_id in keys else next(self._free_keys)
            for server_id in sorted(self._given)
        }
        self.withheld = {record.id for record in records if not record.publishable}
        self._uses_slugs = uses_slugs
        self._new_game = new_game
        self._found_by_slug = found_by_slug
        self._ids = {record.source_id: record.id for record in records if record.source_id}
        self._cfx_owners = {record.cfx_id: record.id for record in records}
        # The identifier of each server that is found by its id or slug; a sourceId is certain.
        self._written = {record.id: record.source_id for record in records if record.source_id}

    @property
    def accepts_any_id(self) -> bool:
        """Whether an identifier of any form can name a server."""
        return self._uses_slugs or bool(self._ids)

    def has_record(self, server_id: str) -> bool:
        """Check whether a server has a record, and not only an identifier in the observations."""
        return server_id in self._given

    def iter_ids(self, observed: Container[int]) -> Iterator[str]:
        """Yield the ids of servers that have a record or, by their keys, an observation."""
        for server_id, key in self.server_keys.items():
            if self.has_record(server_id) or key in observed:
                yield server_id

    def get_record(self, server_id: str) -> servers.ServerRecord:
        """Return the record of a server that has a key, with the identifier that its source uses.

        Records of new servers are made here: many of them would take much memory.
        """
        source_id = self._written.get(server_id)
        given = self._given.get(server_id)
        if given is None:
            return servers.complete_record(
                servers.PartialRecord(id=server_id, source_id=source_id), self._new_game
            )
        if source_id is None or source_id == server_id:
            return given
        return replace(given, source_id=source_id)

    @property
    def is_open(self) -> bool:
        """Whether an identifier without a record becomes a server."""
        return self._new_game is not None

    def check_game(self) -> None:
        """Check that new servers would have a game.

        Raises UsageError.
        """
        if self.is_open and not self._new_game:
            raise UsageError(
                "--game: missing; without a servers file, the servers have no game: add --game"
                f" {' or --game '.join(GAMES)}"
            )

    def note_identifiers(self, identifiers: Iterable[str]) -> None:
        """Note that identifiers were read earlier, so that no other one may become the same slug.

        Raises SourceError as a look-up does.
        """
        for identifier in identifiers:
            self._find_id(identifier)

    def describe_unknown(self) -> list[str]:
        """Return a line that names the identifiers without a server; no line if there are none."""
        names = [name for name, key in self.items() if key == NOT_LISTED]
        if not names:
            return []
        shown = ", ".join(map(wire.quote_value, names[:_MAX_NAMED]))
        more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        found = "1 identifier is" if len(names) == 1 else f"{len(names):,} identifiers are"
        reason = self.skip_reasons[NOT_LISTED]
        return [f"{found} {reason}: {shown}{more}; {self._how_to_add}"]

    def __missing__(self, identifier: str) -> int:
        """Judge an identifier and remember the result."""
        key = self[identifier] = self._judge(identifier)
        return key

    def _judge(self, identifier: str) -> int:
        server_id = self._ids.get(identifier) or self._find_id(identifier)
        if server_id in self.withheld:
            return NOT_PUBLISHABLE
        if server_id in self.server_keys:
            return self.server_keys[server_id]
        if not self._uses_slugs and not IDENTIFIER.fullmatch(identifier):
            return MALFORMED
        if not identifier:
            return EMPTY
        return self._add_server(identifier) if self.is_open else NOT_LISTED

    def _find_id(self, identifier: str) -> str:
        """Return the id that an identifier is, or whose slug it is.

        Raises SourceError if another identifier has the same slug.
        """
        if not self._uses_slugs:
            return identifier
        server_id = identifier
        if not self._is_known(identifier):
            try:
                server_id = servers.make_slug(identifier)
            except servers.SlugError:
                return identifier
        if self._is_known(server_id):
            self._claim(server_id, identifier)
        return server_id

    def _is_known(self, server_id: str) -> bool:
        return server_id in self.server_keys or server_id in self.withheld

    def _claim(self, server_id: str, identifier: str) -> None:
        """Note which identifier of its source a server has."""
        is_given = self._written.get(server_id) in self._ids
        if identifier == server_id and is_given and server_id not in self._found_by_slug:
            return  # a row may also have the id of a record with a sourceId
        first = self._written.setdefault(server_id, identifier)
        if first != identifier:
            raise SourceError(
                f"--ids slug: {wire.quote_value(first)} and {wire.quote_value(identifier)} both"
                f" become {server_id}; give each an id in a servers file, with its sourceId"
            )

    def _add_server(self, identifier: str) -> int:
        """Add a server for an identifier, and return its key."""
        self.check_game()
        server_id = identifier
        if self._uses_slugs:
            try:
                server_id = servers.make_slug(identifier)
            except servers.SlugError as error:
                raise SourceError(str(error)) from None
            self._written[server_id] = identifier
        if server_id in self._cfx_owners:
            raise SourceError(
                f"server {server_id}: its cfxId, taken from the id, is that of server"
                f" {self._cfx_owners[server_id]}; give it another cfxId in a servers file"
            )
        key = self.server_keys[server_id] = next(self._free_keys)
        return key


def read_roster(source: Source | None, *, uses_slugs: bool, game: str | None) -> Roster:
    """Read server records and complete them; without a source, each identifier becomes a server.

    Raises UsageError if the game of a record is missing, SourceError for a bad record,
    MissingLibraryError.
    """
    if source is None:
        return Roster((), uses_slugs=uses_slugs, new_game=game or "")
    records, warnings = read_records(source, game)
    return Roster(
        records,
        uses_slugs=uses_slugs,
        how_to_add=f"add the records to {source.title}",
        warnings=warnings,
    )


def read_records(source: Source, game: str | None) -> tuple[list[servers.ServerRecord], list[str]]:
    """Return the complete records of a source, and its warnings.

    Raises UsageError, SourceError, MissingLibraryError.
    """
    warnings: list[str] = []
    partial_records = load_record_reader(source.kind)(replace(source, on_warning=warnings.append))
    return servers.complete_records(source.title, partial_records, game), warnings


_RECORD = {field.name for field in fields(servers.ServerRecord)} & {*ServerRow._fields}
_DERIVED = tuple(ServerRow._field_defaults)


def build_server_row(record: servers.ServerRecord, number: int) -> ServerRow:
    """Return a row of `servers` without observations; `fill_fallbacks` completes it."""
    values = {name: getattr(record, name) for name in _RECORD} | {
        "tags": encode_texts(record.tags),
        "flags": encode_texts(record.flags),
        "other_source_ids": encode_texts(record.other_source_ids),
        "completed": encode_texts(record.completed),
        "offline": int(record.offline),
    }
    return ServerRow(
        **values,
        server=number,
        current_is_fallback=int(record.players_current is None),
        first_seen_is_fallback=int(record.first_seen_at is None),
        updated_is_fallback=int(record.updated_at is None),
    )


def copy_derived(source: ServerRow, target: ServerRow) -> ServerRow:
    """Return a row with the columns of another one that are derived from observations."""
    return target._replace(**{name: getattr(source, name) for name in _DERIVED})


def fill_fallbacks(row: ServerRow, as_of: int) -> ServerRow:
    """Return a row with the fields that its record lacks, from its observations."""
    first = as_of if row.first_observed_at is None else row.first_observed_at
    last = as_of if row.last_observed_at is None else row.last_observed_at
    return row._replace(
        players_current=row.last_players or 0 if row.current_is_fallback else row.players_current,
        first_seen_at=first if row.first_seen_is_fallback else row.first_seen_at,
        updated_at=last if row.updated_is_fallback else row.updated_at,
    )


def build_record(row: ServerRow) -> servers.ServerRecord:
    """Return the record from which a row was made: fallbacks are None again."""
    values = row._asdict() | {
        "players_current": None if row.current_is_fallback else row.players_current,
        "tags": read_texts(row.tags),
        "flags": read_texts(row.flags),
        "other_source_ids": read_texts(row.other_source_ids),
        "offline": bool(row.offline),
        "first_seen_at": None if row.first_seen_is_fallback else row.first_seen_at,
        "updated_at": None if row.updated_is_fallback else row.updated_at,
        "completed": read_texts(row.completed),
    }
    return servers.ServerRecord(**{name: values[name] for name in _RECORD})


def encode_texts(values: Sequence[str]) -> str:
    """Return texts as a JSON array."""
    return wire.encode(values).decode("utf-8")
