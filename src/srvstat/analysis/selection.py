"""Select the servers of an analysis: by reference, or by properties of their records."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from srvstat.analysis.parameters import IDENTIFIER, By, Parameter
from srvstat.analysis.series import Series, Total, is_silent
from srvstat.contract import errors, requests, wire
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.documents.document import WindowPart, remove_color_codes
from srvstat.operations.answers import NotInBundleError, build_unknown_error
from srvstat.snapshot.read.file import list_source_ids
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow

_MAX_LISTED = 5
"""The maximum number of ids listed for an ambiguous name."""

_MAX_SEARCHED_SERVERS = 50_000
"""The maximum number of servers searched by name (about 1 s)."""


TEXT_HELP = (
    "Only servers with all of these words in their identifiers, hostname, project, description or"
    " tags."
)


@dataclass(frozen=True)
class FilterOptions:
    """Options that filter servers by properties, ignoring case. None matches all servers.

    - `text`: each word must occur in the id, cfxId, sourceId, hostname, project, description or one
      of the tags.
    - `tags`: a server must have all of them.
    - `offline`: a server is online if its record says so and it is not silent.
    """

    panel = "Servers"

    text: Annotated[list[str] | None, Parameter(TEXT_HELP, "TEXT")] = None
    game: Annotated[
        str | None, Parameter("Only servers of this game.", "GAME", completes="games")
    ] = None
    region: Annotated[
        str | None, Parameter("Only servers of this region.", "REGION", completes="regions")
    ] = None
    tags: Annotated[
        list[str] | None,
        Parameter(
            "Only servers with this tag; repeatable, for servers with all of the tags.",
            "TAG",
            ("--tag",),
            completes="tags",
        ),
    ] = None
    offline: Annotated[
        bool | None,
        Parameter(
            "Only servers that are silent or marked offline, or only the others. A silent server"
            " has no observation in the snapshot's last day.",
            names=("--offline/--online",),
        ),
    ] = None

    @property
    def is_empty(self) -> bool:
        """Whether the filter matches all servers."""
        others = (self.game, self.region, self.offline)
        return not self.tags and not self._words and all(one is None for one in others)

    @cached_property
    def _words(self) -> list[str]:
        return " ".join(self.list_words()).casefold().split()

    def list_words(self) -> list[str]:
        """Return the searched texts."""
        return list(self.text or ())

    def matches(self, server: ServerRow, snapshot: Snapshot) -> bool:
        """Return whether a server of a snapshot has all properties."""
        is_offline = bool(server.offline) or is_silent(snapshot, server)
        return (
            self.offline in {None, is_offline}
            and (self.game is None or server.game.casefold() == self.game.casefold())
            and (self.region is None or server.region.casefold() == self.region.casefold())
            and (not self.tags or _has_tags(server, self.tags))
            and (not self._words or _has_words(server, self._words))
        )


@dataclass(frozen=True)
class NamedServers:
    """Options that name servers."""

    panel = "Servers"

    identifiers: Annotated[list[str] | None, IDENTIFIER] = None
    by: By = None

    def check(self) -> None:
        """Check that a server is named. Raises UsageError if not."""
        if not self.identifiers:
            raise errors.UsageError("no server given; srvstat servers lists them")

    def build_references(self) -> "list[Reference]":
        """Return the references of the identifiers.

        Raises InvalidRequestError for an invalid identifier.
        """
        return build_references(self.identifiers, self.by)


@dataclass(frozen=True)
class SelectedServers(FilterOptions, NamedServers):
    """Options that name servers, or select servers by a filter; with `sum`, their total."""

    all: Annotated[bool, Parameter("All servers, or all that match the other options.")] = False
    sum: Annotated[bool, Parameter("Show the total of the servers.")] = False

    @property
    def is_missing(self) -> bool:
        """Whether no option selects servers."""
        return not self.identifiers and not self.all and self.is_empty

    def check(self) -> None:
        """Check that servers are selected in at most one way. Raises UsageError if not."""
        has_filter = self.all or not self.is_empty
        if has_filter and (self.identifiers or self.by is not None):
            raise errors.ParameterError(
                "{all} and filters can't be combined with identifiers or {by}"
            )


@dataclass(frozen=True)
class MatchingServers:
    """The servers that match a filter, ordered by id.

    Each iteration reads them from the snapshot, because thousands of rows take much memory. It may
    raise SnapshotError.
    """

    snapshot: Snapshot
    wanted: FilterOptions

    def __iter__(self) -> Iterator[ServerRow]:
        with self.snapshot.convert_decode_errors("the servers"):
            for server in self.snapshot.iter_servers():
                if self.wanted.matches(server, self.snapshot):
                    yield server


class Question(NamedTuple):
    """The input of an analysis: servers, a window, and a time zone."""

    snapshot: Snapshot
    servers: Sequence[Series] | MatchingServers
    window: Window
    zone: ZoneInfo = ZoneInfo("UTC")

    @property
    def is_sum(self) -> bool:
        """Whether the query is about a total."""
        return not isinstance(self.servers, MatchingServers) and any(
            isinstance(one, Total) for one in self.servers
        )

    def iter_rows(self) -> Iterator[ServerRow]:
        """Yield the servers, with a total replaced by its members."""
        for one in self.servers:
            yield from one.servers if isinstance(one, Total) else (one,)

    def describe(self, *omitted: str) -> dict[str, Any]:
        """Return the fields that most documents share, except the omitted ones."""
        fields = {
            "as_of": self.snapshot.as_of,
            "root": self.snapshot.root,
            "hold": self.snapshot.is_held,
            "time_zone": self.zone.key,
            "window": build_window_part(self.window),
        }
        return {name: value for name, value in fields.items() if name not in omitted}


def build_window_part(window: Window) -> WindowPart:
    """Convert a window to a part of a document."""
    return WindowPart(from_=None if window.start == BEFORE_ALL else window.start, to=window.end)


class Name(NamedTuple):
    """Text that identifies a server by id or, failing that, by name.

    `reference` is None if the text can't be an id.
    """

    text: str
    reference: requests.ServerReference | None


Reference = requests.ServerReference | Name
"""A reference to a server in analyses."""


class UnknownNameError(errors.InvalidRequestError):
    """The text is neither a valid id nor a known name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no server is named {wire.quote_value(name)}")
        self.name = name


def build_references(identifiers: Iterable[str] | None, by: str | None) -> list[Reference]:
    """Return the references of identifiers from a command line or a Python call.

    An identifier with a namespace prefix, or a cfxId, is never a name.

    Raises InvalidRequestError if an identifier is invalid.
    """
    return [_build_reference(text, by) for text in identifiers or ()]


def _build_reference(text: str, by: str | None) -> Reference:
    try:
        reference = requests.build_server_reference(text, by=by)
    except errors.InvalidRequestError:
        if by in {None, "id"} and can_be_name(text):
            return Name(text, None)
        raise
    is_plain = reference.by == "id" and reference.identifier == text
    return Name(text, reference) if is_plain else reference


def can_be_name(text: object) -> bool:
    """Return whether a text can be a server's name: not blank, and without a namespace."""
    prefixes = tuple(f"{namespace}:" for namespace in requests.NAMESPACES)
    if not isinstance(text, str) or text.startswith(prefixes) or not text.strip():
        return False
    return not any("\ud800" <= one <= "\udfff" for one in text)  # not a UTF-8 argument


def find_references(snapshot: Snapshot, references: Iterable[Reference]) -> list[ServerRow]:
    """Return the servers of references, each once, in the order of their first reference.

    Names are looked up only after ids, so a new name never changes the meaning of an id.

    Raises UnknownServerError or UnknownNameError for an unknown server, ServerNotFoundError for an
    ambiguous name, NotInBundleError if a bundle lacks a server, and SnapshotError if data are
    damaged.
    """
    found: dict[str, ServerRow] = {}
    for one, server in _look_up(snapshot, references).items():
        if server is None:
            raise _build_unknown_error(snapshot, one)
        found.setdefault(server.id, server)
    return [*found.values()]


def _look_up(
    snapshot: Snapshot, references: Iterable[Reference]
) -> dict[Reference, ServerRow | None]:
    """Return the server of each reference, or None for an unknown server."""
    strict = {one: one.reference if isinstance(one, Name) else one for one in references}
    asked = [reference for reference in strict.values() if reference is not None]
    known: dict[requests.ServerReference | None, ServerRow | None] = dict(
        zip(asked, snapshot.find_servers(asked), strict=True)
    )
    servers = {one: known.get(reference) for one, reference in strict.items()}
    unknown = [one.text for one, row in servers.items() if row is None and isinstance(one, Name)]
    named = _find_names(snapshot, unknown) if unknown else {}
    return {
        one: _choose_named(one.text, named[one.text])
        if server is None and isinstance(one, Name)
        else server
        for one, server in servers.items()
    }


_Request = TypeVar("_Request", bound=requests.ServerReference | requests.CompareRequest)


def build_named(
    snapshot: Snapshot,
    build: Callable[[Sequence[str]], _Request],
    identifiers: Sequence[str],
    by: str | None,
) -> _Request:
    """Build a request, in which names of servers are replaced by their ids.

    A text counts as a name if it is not a valid id or if no server has this id. Names are resolved
    only in a snapshot that was built without a servers file and is not too large. In other
    snapshots, an unknown id is an error, as in the API.

    Raises InvalidRequestError for an invalid identifier, ServerNotFoundError for an ambiguous name,
    and SnapshotError if data are damaged.
    """
    is_large = snapshot.file_row.server_count > _MAX_SEARCHED_SERVERS
    if is_large or not snapshot.file_row.is_open:
        return build(identifiers)
    try:
        references = [_build_reference(text, by) for text in identifiers]
    except errors.InvalidRequestError:
        return build(identifiers)
    found = _look_up(snapshot, references)
    with snapshot.convert_decode_errors("the servers"):
        named = [
            f"id:{requests.ServerReference(identifier=server.id, by='id').identifier}"
            if isinstance(one, Name) and (server := found[one])
            else text
            for text, one in zip(identifiers, references, strict=True)
        ]
    return build(named)


class _Named(NamedTuple):
    """The servers with a name: exact matches (as shown or as recorded), and matches ignoring case.

    `identifies`: servers whose cfxId equals the name: a description such as `the cfxId of id:a` →
    server id.
    """

    exact: list[ServerRow]
    similar: list[ServerRow]
    identifies: dict[str, str]


def _find_names(snapshot: Snapshot, names: Iterable[str]) -> dict[str, _Named]:
    """Return the servers with each name. Raises SnapshotError if data are damaged."""
    found = {name: _Named([], [], {}) for name in names}
    by_text: dict[str, list[str]] = {}
    for name in found:
        by_text.setdefault(_normalize(name).casefold(), []).append(name)
    with snapshot.convert_decode_errors("the servers"):
        for server in snapshot.iter_servers():
            shown = list_names(server)
            for name in {one for text in shown for one in by_text.get(text.casefold(), ())}:
                named = found[name]
                (named.exact if _normalize(name) in shown else named.similar).append(server)
            for name in by_text.get(server.cfx_id.casefold(), ()):
                found[name].identifies[f"the cfxId of id:{server.id}"] = server.id
    return found


def list_names(server: ServerRow) -> set[str]:
    """Return the names of a server, as shown, as recorded, and from its sources.

    Repeated white space is removed.
    """
    shown = (server.hostname, remove_color_codes(server.hostname))
    return {*map(_normalize, (*shown, *list_source_ids(server)))}


def _normalize(name: str) -> str:
    return " ".join(name.split())


def _choose_named(name: str, named: _Named) -> ServerRow | None:
    """Return the only server with a name, or None if there is none.

    Raises ServerNotFoundError if there are several, or if the name is another server's identifier,
    because anyone can choose a hostname.
    """
    sourced = [server for server in named.exact if name in list_source_ids(server)]
    rivals = [one for one in named.similar if _is_source_id(name, one)] if named.exact else []
    servers = sourced or [*named.exact, *rivals] or named.similar
    if len(servers) > 1:
        ids = ", ".join(server.id for server in servers[:_MAX_LISTED])
        more = f" and {len(servers) - _MAX_LISTED:,} more" if len(servers) > _MAX_LISTED else ""
        raise errors.ServerNotFoundError(
            f"{wire.quote_value(name)} is the name of {len(servers):,} servers; give an id:"
            f" {ids}{more}"
        )
    for server in servers:
        others = [text for text, owner in named.identifies.items() if owner != server.id]
        if others:
            raise errors.ServerNotFoundError(
                f"{wire.quote_value(name)} is the name of id:{server.id} and"
                f" {' and '.join(others[:_MAX_LISTED])}; give one of these"
            )
    return servers[0] if servers else None


def _is_source_id(name: str, server: ServerRow) -> bool:
    """Return whether a name is one of the server's source identifiers, ignoring case."""
    return name.casefold() in map(str.casefold, list_source_ids(server))


def _build_unknown_error(snapshot: Snapshot, wanted: Reference) -> Exception:
    if not isinstance(wanted, Name):
        return build_unknown_error(snapshot, wanted)
    if wanted.reference is not None:
        return build_unknown_error(snapshot, wanted.reference)
    if snapshot.parent_root is None:
        return UnknownNameError(wanted.text)
    return NotInBundleError(
        f"{snapshot.path}: a bundle without a server named {wire.quote_value(wanted.text)}; use the"
        " snapshot that the bundle comes from"
    )


class RecordValues(NamedTuple):
    """The games, regions and tags of servers, each with its number of servers."""

    games: Counter[str]
    regions: Counter[str]
    tags: Counter[str]


def count_record_values(snapshot: Snapshot, *, most: int | None = None) -> RecordValues:
    """Count the games, regions and tags of all servers, or of the first `most`.

    Raises SnapshotError if data are damaged.
    """
    values = RecordValues(Counter(), Counter(), Counter())
    with snapshot.convert_decode_errors("the servers"):
        for server in islice(snapshot.iter_servers(), most):
            values.games[server.game] += 1
            values.regions[server.region] += 1
            values.tags.update(_read_tags(server))
    return values


def _has_tags(server: ServerRow, wanted: Iterable[str]) -> bool:
    own = [tag.casefold() for tag in _read_tags(server)]
    return all(tag.casefold() in own for tag in wanted)


def _has_words(server: ServerRow, words: Iterable[str]) -> bool:
    searched = build_search_text(server)
    return all(word in searched for word in words)


def build_search_text(server: ServerRow) -> str:
    """Return the searchable texts in lower case."""
    # Words contain no white space, so a match never spans two of the joined texts. Titles are
    # searched with color codes, and also as shown, without them.
    titles = (server.hostname, server.project_name)
    others = (server.id, server.cfx_id, *list_source_ids(server), server.project_description)
    texts = (*others, *titles, *map(remove_color_codes, titles), *_read_tags(server))
    return "\n".join(texts).casefold()


def _read_tags(server: ServerRow) -> list[str]:
    """Return the tags of a server."""
    if server.tags == "[]":
        return []
    tags: list[str] = wire.decode_text(server.tags)
    "".join(tags).encode()  # refuses other values, and texts that UTF-8 can't encode
    return tags
