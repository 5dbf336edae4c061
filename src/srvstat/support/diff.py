"""Find the differences between two snapshots, and the responses that change."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import count, groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from srvstat.contract.arrays import Numbers
from srvstat.contract.requests import ServerReference
from srvstat.contract.time import LATEST, format_instant
from srvstat.contract.windows import DAY_MS, DAYS, Window, find_window
from srvstat.documents import support as documents
from srvstat.operations import answers as operations
from srvstat.snapshot.blocks import Observations
from srvstat.snapshot.read.file import list_source_ids
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow, read_block_ends
from srvstat.support.comparing import find_differences

_RECORD = slice(ServerRow._fields.index("id"), ServerRow._fields.index("completed") + 1)
"""The columns of a server that are not derived from its observations."""


class _Files(NamedTuple):
    """The two snapshots, and the time from which both have observations (None: all)."""

    old: Snapshot
    new: Snapshot
    compared_from: int | None


_Pair = tuple[ServerRow | None, ServerRow | None]
"""A server's rows in both snapshots, each None if the snapshot lacks the server."""


def compare_snapshots(
    old: Snapshot,
    new: Snapshot,
    references: Sequence[ServerReference] = (),
    *,
    at: int | None = None,
) -> documents.SnapshotDiff:
    """Return the differences between two snapshots, for the named servers or for all.

    Responses are compared as of `at`, by default the end of the snapshot that ends first. Only the
    servers and the time that a bundle covers are compared: a server missing in a bundle counts as
    neither added nor removed.

    Raises UnknownServerError for a server in neither snapshot, NotInBundleError if a bundle lacks a
    server, and SnapshotError if data are damaged.
    """
    at = min(old.as_of, new.as_of) if at is None else at
    covered = [file.covered_from for file in (old, new) if file.covered_from is not None]
    files = _Files(old, new, max(covered, default=None))
    added: list[str] = []
    removed: list[str] = []
    changed: list[documents.ChangedServer] = []
    answers: list[documents.ChangedAnswer] = []
    pairs = _find_pairs(files, references) if references else _join_servers(files)
    for before, after in pairs if old.root != new.root else ():
        if before is None or after is None:
            added += [after.id] if after else []
            removed += [before.id] if before else []
            continue
        fields = tuple(_find_changed_fields(files, before, after))
        differing = _find_differing(files, before, after)
        if fields or len(differing):
            days = np.unique(differing // DAY_MS).tolist()
            dates = tuple(format_instant(day * DAY_MS)[:10] for day in days)
            changed.append(documents.ChangedServer(server_id=before.id, fields=fields, days=dates))
            answers += _compare_answers(files, before, after, differing, at)
    return documents.SnapshotDiff(
        as_of=at,
        root=new.root,
        old_as_of=old.as_of,
        new_as_of=new.as_of,
        old_root=old.root,
        compared_from=files.compared_from,
        servers=documents.ServerChanges(
            added=tuple(added) if old.covered_from is None else (),
            removed=tuple(removed) if new.covered_from is None else (),
            changed=tuple(changed),
        ),
        answers=tuple(answers),
    )


def _find_pairs(files: _Files, references: Sequence[ServerReference]) -> list[_Pair]:
    """Return the named servers, ordered by id.

    An identifier may name different servers in each file.

    Raises UnknownServerError for a server in neither snapshot, and NotInBundleError if a bundle
    lacks a server.
    """
    by_id = {}
    for reference in references:
        found = [(file, _find_server(file, reference)) for file in (files.old, files.new)]
        if not any(server for _, server in found):
            raise operations.UnknownServerError(reference)
        for file, server in found:
            if server:
                with file.convert_decode_errors(server.title):
                    by_id[server.id] = ServerReference(identifier=server.id, by="id")
    named = [by_id[name] for name in sorted(by_id)]
    return [(_find_server(files.old, one), _find_server(files.new, one)) for one in named]


def _find_server(file: Snapshot, reference: ServerReference) -> ServerRow | None:
    """Return a server, or None if it is unknown. Raises NotInBundleError if a bundle lacks it."""
    with suppress(operations.UnknownServerError):
        return operations.resolve_servers(file, [reference])[0]
    return None


def _join_servers(files: _Files) -> Iterator[_Pair]:
    """Yield all servers of both snapshots, ordered by id."""
    olds = ((server.id, 0, server) for server in files.old.iter_servers())
    news = ((server.id, 1, server) for server in files.new.iter_servers())
    for _, same in groupby(merge(olds, news), key=itemgetter(0)):
        found = {file: server for _, file, server in same}
        yield found.get(0), found.get(1)


def _find_changed_fields(files: _Files, old: ServerRow, new: ServerRow) -> Iterator[str]:
    """Yield the names of the record fields that differ, such as `players.max`."""
    # Most records are equal, and decoding both takes longer than comparing their columns.
    if old[_RECORD] == new[_RECORD]:
        return
    before = files.old.describe_record(old)
    after = files.new.describe_record(new)
    for name, value in before.items():
        if name == "players":
            yield from (f"{name}.{part}" for part in value if value[part] != after[name][part])
        elif value != after[name]:
            yield name
    if list_source_ids(old) != list_source_ids(new):
        yield "sourceId"
    if old.completed != new.completed:
        yield "completed"


def _find_differing(files: _Files, old: ServerRow, new: ServerRow) -> Numbers:
    """Return the times of the observations that differ, in ascending order."""
    if old.block_digests == new.block_digests:
        return np.array([], np.int64)
    # The blocks before the first differing block are equal.
    equal = next(k for k in count() if old.get_block_digest(k) != new.get_block_digest(k))
    with files.old.convert_decode_errors(old.title):
        ends = read_block_ends(old)
    first_day = -(-(files.compared_from or 0) // DAY_MS)
    window = Window(max([first_day * DAY_MS - 1, *ends[equal - 1 : equal]]), LATEST)
    before = read_observations(files.old, old, window)
    after = read_observations(files.new, new, window)
    return np.union1d(_find_missing(before, after), _find_missing(after, before))


def _find_missing(ones: Observations, others: Observations) -> Numbers:
    """Return the times of the observations in `ones` that `others` lack."""
    at = np.searchsorted(others.instants, ones.instants)
    is_missing = np.append(others.instants, -1)[at] != ones.instants
    is_missing |= np.append(others.players, -1)[at] != ones.players
    missing: Numbers = ones.instants[is_missing]
    return missing


def _compare_answers(
    files: _Files, old: ServerRow, new: ServerRow, differing: Numbers, at: int
) -> Iterator[documents.ChangedAnswer]:
    """Yield the results of a server that differ, in the order of the ranges.

    `differing`: the times of the observations that differ, in ascending order.
    """
    # A result's values that are copied from the server's record.
    copied = find_differences(
        {"cfxId": old.cfx_id, "currentPlayers": old.players_current},
        {"cfxId": new.cfx_id, "currentPlayers": new.players_current},
    )
    for name in DAYS:
        window = find_window(name, at)
        if files.compared_from is not None and window.start < files.compared_from:
            continue
        differences = copied
        # Other values change only if a differing observation is in the window.
        if len(differing[window.locate(differing)]):
            before, after = (
                operations.compute_server_results(file, [server], name, at=at)[0].model_dump()
                for file, server in ((files.old, old), (files.new, new))
            )
            differences = find_differences(before, after)
        if differences:
            yield documents.ChangedAnswer(
                server_id=old.id, range=name, differences=tuple(differences)
            )
