"""Build a snapshot from sources: read, judge, store, derive, read back, publish."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import sqlite_utils

from srvstat.contract import wire
from srvstat.contract.errors import OutputError, SnapshotError, SourceError, UsageError
from srvstat.contract.views import BuildSummary
from srvstat.snapshot.publish import published, writing
from srvstat.snapshot.read import open_file
from srvstat.snapshot.schema import APPLICATION_ID, FORMAT_VERSION, schema
from srvstat.sources import observations, servers
from srvstat.sources.batch import Batch, Reject
from srvstat.sources.servers import ServerRecord
from srvstat.sources.source import STDIN, Source, check_stdin_once

Progress = Callable[[int, int], None]
"""Told how many bytes of the observation files and how many rows have just been read."""

_YEAR_2001 = 978_307_200_000

# The draft is thrown away on any error and flushed before it gets its name, so SQLite need neither
# journal nor flush. 64 MiB of cache keep an unsorted input from reading every page again.
_BUILDING = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA cache_size = -65536;
"""


def build(  # noqa: PLR0913 - each is an option of the command
    output: str,
    *,
    servers_source: Source,
    observation_sources: Sequence[Source],
    as_of: int | None = None,
    rejects: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda _bytes, _rows: None,
) -> BuildSummary:
    """Build the snapshot of some sources at a path, and return what became of them.

    `as_of`, in Unix milliseconds, defaults to the latest observation kept. `rejects` names a file
    for the rows that are no observation; `strict` refuses the source of the first one instead.
    Nothing is replaced before the new file is complete and has been read back.

    Raises SourceError, UsageError, OutputError.
    """
    _check_names(output, rejects, [servers_source, *observation_sources])
    with ExitStack() as stack:
        # What is entered last is published first: the snapshot, and then what it rejected.
        write_reject = stack.enter_context(_rejects(rejects))
        draft = stack.enter_context(published(output, overwrite=overwrite))
        records = servers.read(servers_source)
        with _storing(output), closing(sqlite3.connect(draft)) as connection:
            connection.executescript(_BUILDING)
            database = sqlite_utils.Database(connection, execute_plugins=False)
            database.executescript(schema())
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            with database.atomic():
                intake = _Intake(connection, records, as_of, write_reject, strict=strict)
                for source in observation_sources:
                    intake.read(source, progress)
                summary = _derive(database, intake, records, observation_sources)
        _read_back(output, draft, summary)
    return summary


class _Intake:
    """Stores the observations of one source after another and counts what it does not store."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        records: Sequence[ServerRecord],
        as_of: int | None,
        write_reject: Callable[[bytes], None],
        *,
        strict: bool,
    ) -> None:
        self.as_of = as_of
        self.keys = {
            server_id: key
            for key, server_id in enumerate(
                sorted(record.id for record in records if record.publishable), 1
            )
        }
        self.counts: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.first_reject: str | None = None
        self.warnings: list[str] = []
        self._connection = connection
        self._withheld = {record.id for record in records if not record.publishable}
        self._write_reject = write_reject
        self._strict = strict

    def read(self, source: Source, progress: Progress) -> None:
        """Read one source to its end."""
        counted = replace(source, on_bytes=lambda count: progress(count, 0))
        latest = None
        for batch in observations.read(counted):
            self._take(source, batch)
            if batch.latest_integer is not None:
                latest = max(latest or 0, batch.latest_integer)
            progress(0, len(batch.observations) + len(batch.rejects))
        if latest is not None and latest < _YEAR_2001:
            self.warnings.append(
                f"{source.title}: every integer instant lies before 2001; are these seconds?"
                " They are read as milliseconds"
            )

    def _take(self, source: Source, batch: Batch) -> None:
        rows, lines = self._wanted(batch)
        before = self._connection.total_changes
        self._connection.executemany("INSERT OR IGNORE INTO observations VALUES (?, ?, ?)", rows)
        kept = self._connection.total_changes - before
        conflicts = [] if kept == len(rows) else self._conflicts(batch, rows, lines)
        self.counts["read"] += len(batch.observations) + len(batch.rejects)
        self.counts["kept"] += kept
        self.counts["conflicting"] += len(conflicts)
        self.counts["repeated"] += len(rows) - kept - len(conflicts)
        self.counts["rejected"] += len(batch.rejects)
        for reject in sorted([*batch.rejects, *conflicts]):
            self._reject(source, reject)

    def _wanted(self, batch: Batch) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Return the rows of servers we have up to as_of, by key, and the line of each."""
        rows, lines = [], []
        for line, (server_id, observed_at, players) in zip(
            batch.lines, batch.observations, strict=True
        ):
            key = self.keys.get(server_id)
            if key is None:
                known = server_id in self._withheld
                self.left_out["not publishable" if known else "not in the servers file"] += 1
            elif self.as_of is not None and observed_at > self.as_of:
                self.left_out["after as_of"] += 1
            else:
                rows.append((key, observed_at, players))
                lines.append(line)
        return rows, lines

    def _conflicts(
        self, batch: Batch, rows: list[tuple[int, int, int]], lines: list[int]
    ) -> list[Reject]:
        """Return the rows that are not what stands for their server and instant (D16)."""
        stands = "SELECT players FROM observations WHERE server = ? AND observed_at = ?"
        texts = batch.text.split("\n")
        conflicts = []
        for line, (key, observed_at, players) in zip(lines, rows, strict=True):
            (first,) = self._connection.execute(stands, (key, observed_at)).fetchone()
            if first != players:
                reason = f"conflicts with {first} players, read before for this server and instant"
                text = texts[line - batch.first_line].removesuffix("\r")
                conflicts.append(Reject(line, reason, text))
        return conflicts

    def _reject(self, source: Source, reject: Reject) -> None:
        if self._strict:
            raise source.refuse(reject.line, reject.reason)
        if self.first_reject is None:
            self.first_reject = f"{source.title}, line {reject.line}: {reject.reason}"
        self._write_reject(wire.encode({"file": source.title, **reject._asdict()}) + b"\n")


def _derive(
    database: sqlite_utils.Database,
    intake: _Intake,
    records: Sequence[ServerRecord],
    sources: Sequence[Source],
) -> BuildSummary:
    """Store the servers, with what only their observations tell, and the file's own row."""
    spans = {key: _span(database.conn, key) for key in intake.keys.values()}
    observed = [at for span in spans.values() if span for at in (span.first_at, span.last_at)]
    as_of = intake.as_of if intake.as_of is not None else max(observed, default=None)
    if as_of is None:
        raise SourceError("no observation was kept, so nothing tells the as_of; add --as-of TIME")
    rows = [
        _server_row(record, intake.keys[record.id], spans[intake.keys[record.id]], as_of)
        for record in records
        if record.publishable
    ]
    rows.sort(key=lambda row: row["server"])
    database.table("servers").insert_all(rows)
    first, last = min(observed, default=None), max(observed, default=None)
    summary = BuildSummary(
        read=intake.counts["read"],
        kept=intake.counts["kept"],
        repeated=intake.counts["repeated"],
        conflicting=intake.counts["conflicting"],
        rejected=intake.counts["rejected"],
        left_out=intake.left_out,
        first_reject=intake.first_reject,
        servers=len(rows),
        withheld=len(records) - len(rows),
        stand_ins=sum(row["current_is_stand_in"] for row in rows),
        as_of=as_of,
        first_observed_at=first,
        last_observed_at=last,
        warnings=tuple(intake.warnings),
    )
    database.table("snapshot").insert(
        {
            "as_of": as_of,
            "server_count": summary.servers,
            "observation_count": summary.kept,
            "first_observed_at": first,
            "last_observed_at": last,
            "sources": _json([os.path.basename(source.title) for source in sources]),
            "repeated": summary.repeated,
            "conflicting": summary.conflicting,
            "rejected": summary.rejected,
        }
    )
    return summary


class _Span(NamedTuple):
    """The first and the last observation of a server."""

    first_at: int
    last_at: int
    last_players: int


def _span(connection: sqlite3.Connection, key: int) -> _Span | None:
    ends = [
        connection.execute(
            f"SELECT {end}(observed_at), players FROM observations WHERE server = ?",  # noqa: S608 - words of ours
            (key,),
        ).fetchone()
        for end in ("min", "max")
    ]
    first, last = ends
    return None if first[0] is None else _Span(first[0], *last)


def _server_row(record: ServerRecord, key: int, span: _Span | None, as_of: int) -> dict[str, Any]:
    """Return a row of `servers`, with what the record leaves open taken from its observations."""
    row = asdict(record)
    del row["publishable"]
    row["server"] = key
    row["tags"], row["flags"] = _json(record.tags), _json(record.flags)
    row["current_is_stand_in"] = record.players_current is None
    defaults = {
        "players_current": span.last_players if span else 0,
        "first_seen_at": span.first_at if span else as_of,
        "updated_at": span.last_at if span else as_of,
    }
    return row | {name: value for name, value in defaults.items() if row[name] is None}


def _json(values: Sequence[str]) -> str:
    return wire.encode(values).decode("utf-8")


def _check_names(output: str, rejects: str | None, sources: Sequence[Source]) -> None:
    """Refuse to write over what is read, and to write two things to one name."""
    read = {os.path.realpath(source.name) for source in sources if source.name != STDIN}
    check_stdin_once(source.name for source in sources)
    if STDIN in (output, rejects):
        raise UsageError("a snapshot and its rejects are files; - is none")
    for path in filter(None, (output, rejects)):
        if os.path.realpath(path) in read:
            raise UsageError(f"{path}: is a source of this build, and would be replaced")
    if rejects and os.path.realpath(output) == os.path.realpath(rejects):
        raise UsageError(
            f"{rejects}: is the snapshot to build, and the rejects need their own file"
        )


@contextmanager
def _rejects(path: str | None) -> Iterator[Callable[[bytes], None]]:
    """Hand out what writes a line of the rejects; without a path they are not kept."""
    if path is None:
        yield lambda _line: None
        return
    with published(path, overwrite=True) as draft:
        with writing(path):
            file = open(draft, "wb")  # noqa: SIM115 - closed below, where an error has its name

        def write(line: bytes) -> None:
            with writing(path):
                file.write(line)

        try:
            yield write
        finally:
            with writing(path):
                file.close()


@contextmanager
def _storing(output: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OutputError(f"{output}: {error}") from None


def _read_back(output: str, draft: str, summary: BuildSummary) -> None:
    """Open the draft as any reader will, before it gets its name."""
    try:
        with closing(open_file(draft)) as snapshot:
            sound = snapshot.is_sound() and snapshot.view().observations == summary.kept
    except SnapshotError:
        sound = False
    if not sound:
        raise OutputError(f"{output}: what was written does not read back; is the disk failing?")
