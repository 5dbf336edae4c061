"""Map identifiers of sources to servers, and convert server records to rows and back."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import fields, replace
from itertools import count, filterfalse
from types import MappingProxyType

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
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
UNUSABLE = -4
TAKEN = -5

SKIP_REASONS = {NOT_LISTED: "not in the servers file", NOT_PUBLISHABLE: "not public"}
"""Reasons to skip a server's observations, by the code that a roster returns instead of a key."""

NOT_IN_SNAPSHOT = "not in the snapshot"
"""An update's reason in place of "not in the servers file"."""

_MAX_NAMED = 3
"""The maximum number of identifiers shown."""

MALFORMED_REASON = f"serverId: {IDENTIFIER_RULE}"

REJECT_REASONS = {
    MALFORMED: MALFORMED_REASON,
    EMPTY: "serverId: empty",
    UNUSABLE: f"serverId: {servers.SOURCE_ID_RULE}",
    TAKEN: "serverId: the id that another identifier got; build the snapshot from all files again,"
    " or add it to the sourceId of that server with --servers FILE",
}
"""Reasons to reject an identifier's rows, by the code that a roster returns instead of a key."""


class Roster(dict[str, int]):
    """Maps each identifier to its server's key, or to a code below 1 if it has no server.

    - An identifier is resolved on its first look-up. It is a record's id or sourceId or, with
      `uses_slugs`, a text whose slug is the id of a record without a sourceId.
    - `is_open`: any other identifier becomes a new server with `game`, and `name_servers` chooses
      its id. With `uses_slugs`, each of these ids is a slug.
    - `keys`: the existing keys of servers. New keys are the unused numbers from 1.
    - `how_to_add`: the remedy shown for unknown identifiers.
    - `warnings`: warnings about the source of the records.

    A look-up raises SourceError if two identifiers have the same slug of a server with a record.
    """

    def __init__(  # noqa: PLR0913 - what each of its users knows of servers
        self,
        records: Sequence[servers.ServerRecord],
        *,
        uses_slugs: bool = False,
        is_open: bool = False,
        game: str | None = None,
        keys: Mapping[str, int] = MappingProxyType({}),
        how_to_add: str = "",
        warnings: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.warnings = warnings
        self.is_open = is_open
        """Whether an identifier without a record becomes a server."""
        self._how_to_add = how_to_add
        self._given = {record.id: record for record in records if record.publishable}
        self.skip_reasons = dict(SKIP_REASONS)
        self._free_keys = filterfalse(set(keys.values()).__contains__, count(1))
        self.server_keys = {
            server_id: keys[server_id] if server_id in keys else next(self._free_keys)
            for server_id in sorted(self._given)
        }
        self.withheld = {record.id for record in records if not record.publishable}
        self.converted: dict[str, str] = {}
        """Id → identifier, for each new server whose id differs from its identifier."""
        self._uses_slugs = uses_slugs
        self._game = game
        self._used = {used for record in records for used in (record.id, record.cfx_id)}
        self._new: dict[str, int] = {}
        self._found_by_slug: dict[str, str] = {}
        for record in records:
            key = self.server_keys.get(record.id, NOT_PUBLISHABLE)
            is_made = is_open and record.id in map(servers.make_slug, record.source_ids)
            self[record.id] = TAKEN if is_made else key
            self.update(dict.fromkeys(record.source_ids, key))

    @property
    def accepts_any_id(self) -> bool:
        """Whether identifiers of any form can identify a server."""
        records = self._given.values()
        return self.is_open or self._uses_slugs or any(each.source_id for each in records)

    def name_servers(self, observed: Container[int]) -> None:
        """Choose the ids of new servers with an observation. `observed` contains their keys.

        All identifiers must be known, because ids must not depend on the order of rows.
        """
        named = {name: key for name, key in self._new.items() if key in observed}
        ids = servers.choose_ids(named, self._used, converts_all=self._uses_slugs)
        self.server_keys |= {ids[name]: key for name, key in named.items()}
        self.converted |= {ids[name]: name for name in named if ids[name] != name}
        self._used.update(ids.values())
        self._new = {name: key for name, key in self._new.items() if key not in observed}

    def get_record(self, server_id: str) -> servers.ServerRecord:
        """Return the record of a server, with the identifier that its source uses.

        Builds the records of new servers on demand, because many of them would take much memory.
        """
        given = self._given.get(server_id)
        if given is None:
            record = servers.PartialRecord(id=server_id, source_id=self.converted.get(server_id))
            return servers.complete_record(record, self._game)
        if server_id in self._found_by_slug:
            return replace(given, source_id=self._found_by_slug[server_id])
        return given

    def describe_unknown(self) -> list[str]:
        """Return a line that names the identifiers without a server, if there are any."""
        names = [name for name, key in self.items() if key == NOT_LISTED]
        if not names:
            return []
        shown = ", ".join(map(wire.quote_value, names[:_MAX_NAMED]))
        more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        found = "1 identifier is" if len(names) == 1 else f"{len(names):,} identifiers are"
        reason = self.skip_reasons[NOT_LISTED]
        return [f"{found} {reason}: {shown}{more}; {self._how_to_add}"]

    def __missing__(self, identifier: str) -> int:
        """Resolve an identifier and remember the result."""
        key = self[identifier] = self._judge(identifier)
        return key

    def _judge(self, identifier: str) -> int:
        if not identifier.strip():
            return EMPTY
        takes_any = self.is_open or self._uses_slugs
        if takes_any and not servers.is_source_id(identifier):
            return UNUSABLE
        if self.is_open:
            key = self._new[identifier] = next(self._free_keys)
            return key
        if self._uses_slugs:
            return self._find_by_slug(identifier)
        return NOT_LISTED if IDENTIFIER.fullmatch(identifier) else MALFORMED

    def _find_by_slug(self, identifier: str) -> int:
        server_id = servers.make_slug(identifier)
        if server_id in self.withheld:
            return NOT_PUBLISHABLE
        if server_id not in self._given or self._given[server_id].source_id is not None:
            return NOT_LISTED
        first = self._found_by_slug.setdefault(server_id, identifier)
        if first != identifier:
            raise SourceError(
                f"--slug-ids: {wire.quote_value(first)} and {wire.quote_value(identifier)} both"
                f" become {server_id}; list them in the sourceId of a servers file's records"
            )
        return self.server_keys[server_id]


def read_roster(source: Source | None, *, uses_slugs: bool, game: str | None) -> Roster:
    """Read and complete server records. Without a source, each identifier becomes a server.

    Raises SourceError for an invalid record, and MissingLibraryError if a format's library is
    missing.
    """
    if source is None:
        return Roster((), uses_slugs=uses_slugs, is_open=True, game=game)
    records, warnings = read_records(source, game)
    return Roster(
        records,
        uses_slugs=uses_slugs,
        how_to_add=f"add the records to {source.title}",
        warnings=warnings,
    )


def read_records(source: Source, game: str | None) -> tuple[list[servers.ServerRecord], list[str]]:
    """Return the complete records of a source, and its warnings.

    Raises SourceError for an invalid record, and MissingLibraryError if a format's library is
    missing.
    """
    warnings: list[str] = []
    partial_records = load_record_reader(source.kind)(replace(source, on_warning=warnings.append))
    return servers.complete_records(source.title, partial_records, game), warnings


_RECORD = {field.name for field in fields(servers.ServerRecord)} & {*ServerRow._fields}
_DERIVED = tuple(ServerRow._field_defaults)
_LISTS = ("tags", "flags", "other_source_ids", "completed")
_FALLBACKS = {
    "players_current": "current_is_fallback",
    "first_seen_at": "first_seen_is_fallback",
    "updated_at": "updated_is_fallback",
}
"""The optional fields of a record, and the columns that mark them as filled in."""


def build_server_row(record: servers.ServerRecord, number: int) -> ServerRow:
    """Return a row of `servers` without observations. `fill_fallbacks` completes it."""
    values = {name: getattr(record, name) for name in _RECORD} | {
        "server": number,
        "offline": int(record.offline),
        **{name: encode_texts(getattr(record, name)) for name in _LISTS},
        **{flag: int(getattr(record, name) is None) for name, flag in _FALLBACKS.items()},
    }
    return ServerRow(**values)


def copy_derived(source: ServerRow, target: ServerRow) -> ServerRow:
    """Return `target` with the columns that `source` derived from observations."""
    return target._replace(**{name: getattr(source, name) for name in _DERIVED})


def fill_fallbacks(row: ServerRow, as_of: int) -> ServerRow:
    """Fill in the fields that the server's record lacks, from its observations."""
    first = as_of if row.first_observed_at is None else row.first_observed_at
    last = as_of if row.last_observed_at is None else row.last_observed_at
    return row._replace(
        players_current=row.last_players or 0 if row.current_is_fallback else row.players_current,
        first_seen_at=first if row.first_seen_is_fallback else row.first_seen_at,
        updated_at=last if row.updated_is_fallback else row.updated_at,
    )


def build_record(row: ServerRow) -> servers.ServerRecord:
    """Return the record from which a row was built. Filled-in values are None again."""
    values = row._asdict() | {
        "offline": bool(row.offline),
        **{name: read_texts(getattr(row, name)) for name in _LISTS},
        **{name: None for name, flag in _FALLBACKS.items() if getattr(row, flag)},
    }
    return servers.ServerRecord(**{name: values[name] for name in _RECORD})


def encode_texts(values: Sequence[str]) -> str:
    """Return texts as a JSON array."""
    return wire.encode(values).decode("utf-8")
