"""Hints: which server an unknown identifier or name may mean, and which values filters can have."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from difflib import get_close_matches
from itertools import islice, product

from srvstat.analysis import selection
from srvstat.cli.output import report
from srvstat.contract import wire
from srvstat.contract.errors import ApiError, InvalidRequestError, SrvstatError
from srvstat.contract.requests import NAMESPACES, Namespace, ServerReference, build_server_reference
from srvstat.documents.document import remove_color_codes
from srvstat.operations.answers import UnknownServerError
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.rows import ServerRow

_MAX_COMPARED_CHARACTERS = 12_000
"""Comparing this many takes about 20 ms."""

_MAX_SEARCHED_SERVERS = 10_000
"""Reading this many takes 0.1 s."""

_LEAST_SEARCHED = 3
"""The length of a text from which servers that contain it are suggested: shorter ones fit many."""

_MAX_SUGGESTED = 5
_MAX_LISTED = 10


def find_hint(
    error: ApiError, paths: Iterable[str], identifiers: Sequence[str], by: str | None
) -> str:
    """Return a hint after a semicolon for an error of an unknown server; empty without one.

    The first of several snapshots that has a hint gives it. `identifiers` are those of a command
    that takes no names: they may be names all the same.

    Raises SnapshotError.
    """
    if isinstance(error, UnknownServerError):
        return _suggest(paths, error.reference.identifier, error.reference.by)
    if isinstance(error, selection.UnknownNameError):
        return _suggest(paths, error.name, "id")
    if isinstance(error, InvalidRequestError):
        # The request is invalid, whatever the state of the snapshot.
        with suppress(SrvstatError):
            references = selection.build_references(identifiers, by)
            names = [one for one in references if isinstance(one, selection.Name)]
            unknown = [one.text for one in names if not one.reference]
            return _suggest(paths, unknown[0], "id") if unknown else ""
    return ""


def _suggest(paths: Iterable[str], unknown: str, by: Namespace) -> str:
    for path in paths:
        with closing(open_snapshot(path)) as snapshot:
            if hint := suggest_servers(snapshot, unknown, by):
                return f"; {hint}"
    return ""


def suggest_servers(snapshot: Snapshot, unknown: str, by: Namespace) -> str | None:
    """Return a hint such as `did you mean cfxId:abc?` for an unknown text; None without one.

    Raises SnapshotError.
    """
    reference = _build_reference(unknown, by)
    if reference is not None:
        for namespace in NAMESPACES:
            if namespace != by and snapshot.has_identifier(namespace, unknown):
                return f"did you mean {namespace}:{unknown}?"
    near = [] if reference is None else _find_near_identifiers(snapshot, reference)
    if by != "id":
        return f"similar: {', '.join(near)}" if near else None
    named, matching, similar = _search_servers(snapshot, unknown)
    if len(named) == 1:
        return f"did you mean id:{_describe(named[0])}?"
    described = {server.id: _describe(server) for server in (*named, *matching)}
    described |= {name: name for name in near if name not in described}
    described |= {server.id: _describe(server) for server in similar if server.id not in near}
    listed = list(described.values())[:_MAX_SUGGESTED]
    return f"similar: {', '.join(listed)}" if listed else None


def _build_reference(text: str, by: Namespace) -> ServerReference | None:
    try:
        return build_server_reference(f"{by}:{text}")
    except InvalidRequestError:
        return None


def _describe(server: ServerRow) -> str:
    """Return the id of a server, and its name if that is another text."""
    name = remove_color_codes(server.hostname)
    return server.id if name == server.id else f"{server.id} ({wire.quote_value(name)})"


def _find_near_identifiers(snapshot: Snapshot, unknown: ServerReference) -> list[str]:
    names = {name.lower(): name for name in _find_neighbors(snapshot, unknown)}
    near = [names[name] for name in get_close_matches(unknown.identifier.lower(), names)]
    return [name for name in near if snapshot.has_identifier(unknown.by, name)]


def _find_neighbors(snapshot: Snapshot, unknown: ServerReference) -> list[str]:
    """Return the few identifiers before and after an unknown one, in order.

    Upper case sorts before lower case, so each spelling has its own neighbors.
    """
    text = unknown.identifier
    spellings = {text, text.lower(), text.upper()}
    most = _MAX_COMPARED_CHARACTERS // len(text) // (2 * len(spellings))
    found: set[str] = set()
    for spelling, backwards in product(spellings, (False, True)):
        around = snapshot.iter_identifiers(unknown.by, spelling, backwards=backwards)
        found.update(islice(around, most))
    return sorted(found)


def _search_servers(
    snapshot: Snapshot, text: str
) -> tuple[list[ServerRow], list[ServerRow], list[ServerRow]]:
    """Return the first servers with a name, that `servers` finds for it, and with similar names."""
    wanted = selection.FilterOptions([text])
    spelled = " ".join(text.split()).casefold()
    named: list[ServerRow] = []
    matching: list[ServerRow] = []
    names: dict[str, ServerRow] = {}
    compared = 0
    with snapshot.convert_decode_errors("the servers"):
        for server in islice(snapshot.iter_servers(), _MAX_SEARCHED_SERVERS):
            is_named = spelled in map(str.casefold, selection.list_names(server))
            if is_named and len(named) < _MAX_SUGGESTED:
                named.append(server)
            is_open = len(text) >= _LEAST_SEARCHED and len(matching) < _MAX_SUGGESTED
            if is_open and wanted.matches(server, snapshot):
                matching.append(server)
            name = remove_color_codes(server.hostname).casefold()
            compared += len(name)
            if compared <= _MAX_COMPARED_CHARACTERS:
                names.setdefault(name, server)
    return named, matching, [names[name] for name in get_close_matches(text.casefold(), names)]


def report_no_match(snapshot: Snapshot, wanted: selection.FilterOptions) -> None:
    """Say on standard error that no server matches a filter, and what exists if a value does not.

    Raises SnapshotError.
    """
    if wanted.game is None and wanted.region is None and not wanted.tags:
        report("note: no server matches")
        return
    values = selection.count_record_values(snapshot)
    unknown = [
        f"note: --{name}: no server has {wire.quote_value(value)}; {_list_values(name, counts)}"
        for name, given, counts in (
            ("game", (wanted.game,), values.games),
            ("region", (wanted.region,), values.regions),
            ("tag", wanted.tags or (), values.tags),
        )
        for value in given
        if value is not None and value.casefold() not in map(str.casefold, counts)
    ]
    report(*(unknown or ["note: no server matches all options"]))


def _list_values(name: str, counts: Counter[str]) -> str:
    """Return the most frequent values, each with the number of its servers."""
    known = [(value, count) for value, count in counts.most_common() if value]
    if not known:
        return f"no server has a {name}"
    first = [f"{wire.quote_value(value)} ({count:,})" for value, count in known[:_MAX_LISTED]]
    more = len(known) - len(first)
    return f"{name}s are {', '.join(first)}" + (f" and {more:,} more" if more else "")
