"""Find the differences between two snapshots by their digests, and the answers that change.

A day is read only if its digests differ in the two files. They can differ for equal observations:
the row of a day also depends on earlier and later observations.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, get_args

from srvstat import operations
from srvstat.contract.instants import format_instant
from srvstat.contract.requests import ServerReference
from srvstat.contract.windows import DAY_MS, Range, Window, find_window
from srvstat.documents.support import (
    ChangedAnswer,
    ChangedServer,
    Difference,
    ServerChanges,
    SnapshotDiff,
)
from srvstat.snapshot.format.calendar import Entry
from srvstat.snapshot.format.days import read_day_observations
from srvstat.snapshot.format.rows import Day, ServerRow
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.support.comparing import find_differences

_RANGES: tuple[Range, ...] = get_args(Range)

_RECORD = slice(ServerRow._fields.index("id"), ServerRow._fields.index("completed") + 1)
"""The columns of a server that are not derived from its observations."""

_DAYS_PER_READ = 250
_SERVERS_PER_READ = 100
"""A statement reads at most 1,000 rows: of a server, two days and a few bands."""


class _Files(NamedTuple):
    """The two snapshots, and the instant from which both have observations (None: all)."""

    old: Snapshot
    new: Snapshot
    compared_from: int | None


class _Pair(NamedTuple):
    """The rows of a server in both snapshots; None where it is missing."""

    old: ServerRow | None
    new: ServerRow | None


class _Days(NamedTuple):
    """The days of a server in a snapshot, with the digests of their rows."""

    file: Snapshot
    server: ServerRow
    digests: Mapping[int, bytes]
    last_read: dict[int, Day]
    """The rows of the last call of `read`, by day."""

    def read(self, days: Sequence[int]) -> list[Day]:
        """Return the rows of some days."""
        rows = self.file.read_days(self.server, [Entry(day, self.digests[day]) for day in days])
        self.last_read.clear()
        self.last_read.update(zip(days, rows, strict=True))
        return rows

    def read_observations(self, day: int, until: int) -> set[tuple[int, int]]:
        """Return the instants and the players of the observations on a day, up to `until`."""
        midnight = day * DAY_MS
        if day not in self.digests or midnight > until:
            return set()
        # The last differing day was most likely among the last days that were compared.
        row = self.last_read.get(day)
        rows = [row] if row else self.read([day])
        with self.file.convert_decode_errors(f"the days of {self.server.title}"):
            return set(zip(*read_day_observations(rows, Window(midnight - 1, until)), strict=True))


class _Change(NamedTuple):
    """A changed server, and the instant of its last differing observation up to the as of."""

    old: ServerRow
    new: ServerRow
    fields: tuple[str, ...]
    days: list[int]
    last_difference: int | None


def compare_snapshots(
    old: Snapshot,
    new: Snapshot,
    references: Sequence[ServerReference] = (),
    *,
    at: int | None = None,
) -> SnapshotDiff:
    """Return the differences between two snapshots: of the named servers, or of all.

    Both answer as of `at`, by default the earlier of their own. Of a bundle, only what it covers is
    compared: a server that it lacks was neither added nor removed.

    Raises UnknownServerError for a server that neither has, NotInBundleError, SnapshotError.
    """
    at = min(old.as_of, new.as_of) if at is None else at
    covered = [file.covered_from for file in (old, new) if file.covered_from is not None]
    files = _Files(old, new, max(covered, default=None))
    added: list[str] = []
    removed: list[str] = []
    changed: list[ChangedServer] = []
    answers: list[ChangedAnswer] = []
    for batch in _split(_list_pairs(files, references)):
        added += [pair.new.id for pair in batch if pair.new and not pair.old]
        removed += [pair.old.id for pair in batch if pair.old and not pair.new]
        changes = list(_find_changes(files, batch, at))
        changed += (
            ChangedServer(
                server_id=change.old.id,
                fields=change.fields,
                days=tuple(format_instant(day * DAY_MS)[:10] for day in change.days),
            )
            for change in changes
        )
        answers += _compare_answers(files, changes, at)
    return SnapshotDiff(
        as_of=at,
        root=new.root,
        old_as_of=old.as_of,
        new_as_of=new.as_of,
        old_root=old.root,
        compared_from=files.compared_from,
        servers=ServerChanges(
            added=tuple(added) if old.covered_from is None else (),
            removed=tuple(removed) if new.covered_from is None else (),
            changed=tuple(changed),
        ),
        answers=tuple(answers),
    )


def _list_pairs(files: _Files, references: Sequence[ServerReference]) -> Iterable[_Pair]:
    """Return the servers to compare, ordered by id: none if the snapshots have equal content.

    Raises UnknownServerError, NotInBundleError.
    """
    pairs = _find_pairs(files, references) if references else _join_servers(files)
    return () if files.old.root == files.new.root else pairs


def _find_pairs(files: _Files, references: Sequence[ServerReference]) -> list[_Pair]:
    """Return the named servers, ordered by id. An identifier can name one in each snapshot.

    Raises UnknownServerError for a server that neither snapshot has, NotInBundleError.
    """
    by_id = {}
    for reference in references:
        found = [(file, _find_server(file, reference)) for file in (files.old, files.new)]
        for file, server in found:
            if server:
                with file.convert_decode_errors(server.title):
                    by_id[server.id] = ServerReference(identifier=server.id, by="id")
        if not any(server for _, server in found):
            raise operations.UnknownServerError(reference)
    return [
        _Pair(_find_server(files.old, reference), _find_server(files.new, reference))
        for _, reference in sorted(by_id.items())
    ]


def _find_server(file: Snapshot, reference: ServerReference) -> ServerRow | None:
    """Return a server; None for an unknown one.

    Raises NotInBundleError.
    """
    try:
        (server,) = operations.resolve_servers(file, [reference])
    except operations.UnknownServerError:
        return None
    return server


def _join_servers(files: _Files) -> Iterator[_Pair]:
    """Yield all servers of both snapshots in the order of their ids."""
    olds, news = files.old.iter_servers(), files.new.iter_servers()
    old, new = next(olds, None), next(news, None)
    while old or new:
        if old is None or (new and new.id < old.id):
            yield _Pair(None, new)
            new = next(news, None)
        elif new is None or old.id < new.id:
            yield _Pair(old, None)
            old = next(olds, None)
        else:
            yield _Pair(old, new)
            old, new = next(olds, None), next(news, None)


def _split(pairs: Iterable[_Pair]) -> Iterator[list[_Pair]]:
    """Yield pairs in lists short enough to read them with one statement."""
    remaining = iter(pairs)
    while batch := list(islice(remaining, _SERVERS_PER_READ)):
        yield batch


def _find_changes(files: _Files, pairs: Iterable[_Pair], at: int) -> Iterator[_Change]:
    """Yield the servers in both snapshots whose record or observations differ."""
    for old, new in pairs:
        if old is None or new is None:
            continue
        first = -(-(files.compared_from or 0) // DAY_MS)
        old_days, new_days = (
            _Days(file, server, dict(file.iter_entries(server, first)), {})
            for file, server in ((files.old, old), (files.new, new))
        )
        fields = tuple(_find_changed_fields(files, old, new))
        days = _find_changed_days(old_days, new_days)
        if fields or days:
            last = _find_last_difference(old_days, new_days, days, at)
            yield _Change(old, new, fields, days, last)


def _find_changed_fields(files: _Files, old: ServerRow, new: ServerRow) -> Iterator[str]:
    """Yield the names of the fields of server records that differ, such as `players.max`."""
    # Most records are equal, and decoding both takes longer than comparing their columns.
    if old[_RECORD] == new[_RECORD]:
        return
    before = files.old.get_detail(old).server.model_dump()
    after = files.new.get_detail(new).server.model_dump()
    for name, value in before.items():
        if name == "players":
            yield from (f"{name}.{part}" for part in value if value[part] != after[name][part])
        elif value != after[name]:
            yield name
    if old.source_id != new.source_id:
        yield "sourceId"
    if old.completed != new.completed:
        yield "completed"


def _find_changed_days(old: _Days, new: _Days) -> list[int]:
    """Return the days whose observations differ, ascending."""
    changed = [*old.digests.keys() ^ new.digests.keys()]
    shared = old.digests.keys() & new.digests.keys()
    unequal = sorted(day for day in shared if old.digests[day] != new.digests[day])
    for start in range(0, len(unequal), _DAYS_PER_READ):
        days = unequal[start : start + _DAYS_PER_READ]
        changed += [
            day
            for day, old_row, new_row in zip(days, old.read(days), new.read(days), strict=True)
            if (old_row.times, old_row.players) != (new_row.times, new_row.players)
        ]
    return sorted(changed)


def _find_last_difference(old: _Days, new: _Days, days: Sequence[int], at: int) -> int | None:
    """Return the instant of the last differing observation up to `at`, if any.

    The result of a server can differ only for windows that contain it.
    """
    for day in reversed(days):
        differing = old.read_observations(day, at) ^ new.read_observations(day, at)
        if differing:
            return max(instant for instant, _ in differing)
    return None


def _compare_answers(files: _Files, changes: Sequence[_Change], at: int) -> Iterator[ChangedAnswer]:
    """Yield the results that differ, for each server in the order of the ranges."""
    copied = {
        change.old.id: find_differences(_list_copied(change.old), _list_copied(change.new))
        for change in changes
    }
    found = {
        name: copied | _compare_results(files, changes, name, at)
        for name in _RANGES
        if files.compared_from is None or find_window(name, at).start >= files.compared_from
    }
    for change in changes:
        for name, differences in found.items():
            if listed := tuple(differences[change.old.id]):
                yield ChangedAnswer(server_id=change.old.id, range=name, differences=listed)


def _list_copied(server: ServerRow) -> dict[str, Any]:
    """Return the values of a result that are copied from the record of the server."""
    return {"cfxId": server.cfx_id, "currentPlayers": server.players_current}


def _compare_results(
    files: _Files, changes: Sequence[_Change], name: Range, at: int
) -> dict[str, list[Difference]]:
    """Return the differences of the results whose window has a differing observation, by id."""
    start = find_window(name, at).start
    affected = [
        one for one in changes if one.last_difference is not None and start < one.last_difference
    ]
    before, after = (
        operations.compute_server_results(file, servers, name, at=at)
        for file, servers in (
            (files.old, [change.old for change in affected]),
            (files.new, [change.new for change in affected]),
        )
    )
    return {
        old.serverId: _find_changed_members(old.model_dump(), new.model_dump())
        for old, new in zip(before, after, strict=True)
    }


def _find_changed_members(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Return the differences between two objects with the same keys."""
    # Most members are equal, and comparing them in detail takes longer.
    keys = [key for key, value in old.items() if value != new[key]]
    return find_differences({key: old[key] for key in keys}, {key: new[key] for key in keys})
