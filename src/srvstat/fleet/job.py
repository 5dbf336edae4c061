"""Run a job: find the servers of a fleet, compute their results, and write them."""

import os
import shutil
import signal
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from multiprocessing import (
    active_children,
    get_context,
    parent_process,
    popen_spawn_posix,  # noqa: F401 - a later import could swallow an interruption
    synchronize,  # noqa: F401 - likewise
)
from multiprocessing.connection import Connection
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from srvstat.contract.errors import THREAD_LIMIT, EngineError, UsageError
from srvstat.contract.responses import ServerResult, build_result
from srvstat.contract.stats import compute_statistics
from srvstat.contract.windows import Range, find_window
from srvstat.documents.snapshot import FleetSummary, Manifest, ManifestShard, seal_manifest
from srvstat.files.paths import convert_write_errors, describe_error
from srvstat.files.writing import atomic_folder, atomic_write, write_file
from srvstat.fleet.engine import Engine, Identified, Progress, Resolved, Servers, open_engine
from srvstat.fleet.rows import Conflicts
from srvstat.snapshot.rows import (
    MANIFEST,
    FileRow,
    compute_shards_root,
    find_observed_span,
    find_shard,
    name_shard,
)
from srvstat.snapshot.write import refusals
from srvstat.snapshot.write.build import Shard, build_shard
from srvstat.snapshot.write.intake import AFTER_AS_OF, Inputs, Intake, open_temporary
from srvstat.snapshot.write.roster import REJECT_REASONS, read_roster
from srvstat.sources.servers import ServerRecord, count_completed
from srvstat.sources.source import check_sources, list_stored_names
from srvstat.sources.values import is_utf8

if TYPE_CHECKING:
    import pyarrow as pa


RESULT_EXTENSIONS = (".ndjson", ".jsonl", ".parquet")

_ROWS_PER_GROUP = 50_000
"""The number of results in memory while a Parquet file is written."""


def find_extension(path: str) -> str:
    """Return the extension of a results file, in lower case.

    Raises UsageError if no results format has this extension.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension not in RESULT_EXTENSIONS:
        raise UsageError(
            f"-o {path}: unknown format; end the name in {', '.join(RESULT_EXTENSIONS)}"
        )
    return extension


def write_results(path: str, results: Iterable[ServerResult], extension: str) -> None:
    """Write results to a file. `extension` is one of RESULT_EXTENSIONS and selects the format.

    An NDJSON line has the bytes of the result in a response of `compare`.

    Raises OSError if the file can't be written.
    """
    if extension == ".parquet":
        _write_parquet(path, results)
        return
    with open(path, "wb") as file:
        file.writelines(f"{result.encode_once()}\n".encode() for result in results)


def build_schema() -> "pa.Schema":
    """Return the columns of a Parquet results file."""
    import pyarrow as pa  # noqa: PLC0415 - see _write_parquet

    return pa.schema(
        [
            pa.field("serverId", pa.string(), nullable=False),
            pa.field("cfxId", pa.string(), nullable=False),
            pa.field("range", pa.string(), nullable=False),
            pa.field("currentPlayers", pa.int64(), nullable=False),
            ("averagePlayers", pa.float64()),
            ("medianPlayers", pa.float64()),
            ("peakPlayers", pa.int64()),
            ("lowestPlayers", pa.int64()),
            ("growthPlayers", pa.int64()),
            ("growthPercentage", pa.float64()),
            ("uptime", pa.float64()),
            pa.field("sampleCount", pa.int64(), nullable=False),
        ]
    )


def _write_parquet(path: str, results: Iterable[ServerResult]) -> None:
    # Imported here, because the command checks the file name before it needs the extra `bulk`.
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    schema, rows = build_schema(), map(_build_row, results)
    with open(path, "wb") as file, ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(rows, _ROWS_PER_GROUP)):
            writer.write_batch(pa.RecordBatch.from_pylist(group, schema))


def _build_row(result: ServerResult) -> dict[str, Any]:
    growth = result.growth
    return {
        **result.model_dump(exclude={"growth"}),
        "growthPlayers": growth.players,
        "growthPercentage": growth.percentage,
    }


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Report = Callable[[int], None]
"""Called with the number of rows just processed."""

_SECONDS_PER_REPORT = 0.1
_SECONDS_TO_END = 5
_SECONDS_TO_ANSWER = 60.0
"""The maximum time without a report. Then the processes are considered stuck."""

_reports: ContextVar[Connection] = ContextVar("_reports")


class WorkerError(Exception):
    """A process could not be started, or ended during a job. The message gives the reason."""


def do_jobs(
    function: Callable[[_Item, Report], _Result],
    items: Iterable[_Item],
    *,
    processes: int,
    report: Report,
) -> Iterator[tuple[_Item, _Result]]:
    """Yield each item with the result of `function`, in order of completion.

    The processes must be able to import the function, and to pickle items, results and errors. They
    are killed when the iterator ends or is closed. If no process reports for a minute, this process
    does the remaining jobs, so the function must be able to repeat a job.

    Raises the errors of the function, and WorkerError if a process fails.
    """
    rest = iter(items)
    jobs: dict[Future[_Result], _Item] = {}
    children: set[Any] = set()
    # Summed, because a clock would also measure time while the machine or the job is suspended.
    silent = 0.0
    try:
        with _open_pool(processes) as (pool, reports):
            while silent < _SECONDS_TO_ANSWER:
                for item in islice(rest, processes - len(jobs)):
                    jobs[_submit(pool, function, item)] = item
                if not jobs:
                    return
                # `active_children()` would omit a process that has just been killed.
                children.update([*pool._processes.values()])  # noqa: SLF001
                done, _ = wait(jobs, _SECONDS_PER_REPORT, FIRST_COMPLETED)
                silent += _SECONDS_PER_REPORT
                while reports.poll():
                    report(reports.recv())
                    silent = 0.0
                for future in done:
                    yield jobs.pop(future), future.result()
                    silent = 0.0
    except BrokenProcessPool:
        for child in children:
            child.join(_SECONDS_TO_END)
        # The pool ends the other processes with SIGTERM.
        codes = (child.exitcode or -signal.SIGTERM for child in children)
        code = max(codes, default=1)  # without a child, the process ended at once
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        raise WorkerError(f"a process ended {how}") from None
    for item in chain(jobs.values(), rest):
        yield item, function(item, report)


@contextmanager
def _open_pool(processes: int) -> Iterator[tuple[ProcessPoolExecutor, Connection]]:
    """Yield a pool of processes, and their reports.

    All processes are killed at the end of the block.

    Raises WorkerError if the pool can't be created.
    """
    # A fork would copy locks that pyarrow's threads may hold.
    context = get_context("spawn")
    with _convert_start_errors():
        # The processes write their small reports to one pipe, which needs no lock.
        reports, writing = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(processes, context, _prepare_process, (writing,))
    queue: Any = pool._call_queue  # type: ignore[attr-defined] # noqa: SLF001 - see below
    # Start this thread here. If the pool's own thread failed to start it, the jobs would wait
    # forever.
    queue._start_thread()  # noqa: SLF001
    try:
        yield pool, reports
    finally:
        for child in active_children():
            child.kill()
        ending = Thread(target=pool.shutdown, kwargs={"cancel_futures": True}, daemon=True)
        ending.start()
        ending.join(_SECONDS_TO_END)
        if ending.is_alive():  # pragma: no cover - before Python 3.11.8 and 3.12.2
            # The pool waits to send a job to a killed process until the pipe has no reader.
            queue._reader.close()  # noqa: SLF001


def _submit(
    pool: ProcessPoolExecutor, function: Callable[[_Item, Report], _Result], item: _Item
) -> Future[_Result]:
    """Submit a job. The pool may start a process for it.

    Raises BrokenProcessPool if a process has ended, and WorkerError if none can be started.
    """
    # Only this process handles interruptions from the terminal.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        with _convert_start_errors():
            return pool.submit(_do_job, function, item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@contextmanager
def _convert_start_errors() -> Iterator[None]:
    try:
        yield
    except BlockingIOError:
        raise EngineError(THREAD_LIMIT) from None
    except OSError as error:
        raise WorkerError(f"a process can't be started: {describe_error(error)}") from None


def _prepare_process(reports: Connection) -> None:  # pragma: no cover - runs in another process
    _reports.set(reports)
    with suppress(RuntimeError):  # at the limit of threads
        Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:  # pragma: no cover - runs in another process
    if parent := parent_process():
        parent.join()
    os._exit(1)


def _do_job(
    function: Callable[[Any, Report], _Result], item: object
) -> _Result:  # pragma: no cover - runs in another process
    return function(item, _reports.get().send)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover - not on Linux


_BYTES_PER_PROCESS = 512 << 20
"""The memory of a process that builds shards. For servers of 20,000 rows, it uses 260 MiB."""


class FleetRequest(NamedTuple):
    """The sources of a fleet job, and the results to compute.

    - `output`: the results file, or None.
    - `snapshots`: the folder of a sharded snapshot, or None.
    - `memory`: in bytes.
    """

    inputs: Inputs
    range: Range
    conflicts: Conflicts
    output: str | None
    overwrite: bool
    snapshots: str | None
    shards: int
    memory: int | None
    threads: int | None


def run_fleet(request: FleetRequest, progress: Progress) -> FleetSummary:
    """Write the requested results and snapshot, each atomically.

    Raises UsageError for an unusable path, SourceError if a source is refused, EngineError if the
    engine fails, and OutputError if an output can't be written.
    """
    with ExitStack() as stack:
        results = sharded = None
        if request.output is not None:
            writing = atomic_write(request.output, overwrite=request.overwrite)
            results = stack.enter_context(writing)
        if request.snapshots is not None:
            folder = stack.enter_context(atomic_folder(request.snapshots, "--snapshots"))
            if not is_utf8(folder):  # DuckDB accepts only UTF-8 paths
                raise UsageError(
                    f"--snapshots {request.snapshots}: the whole path must be UTF-8; name another"
                    " one"
                )
            sharded = ShardedDraft(folder, request.snapshots, request.shards)
        inputs = request.inputs
        check_sources(inputs.sources)
        roster = read_roster(inputs.servers, uses_slugs=inputs.uses_slugs, game=inputs.game)
        sources = [
            replace(source, accepts_any_id=roster.accepts_any_id) for source in inputs.observations
        ]
        connection = stack.enter_context(open_temporary())
        intake = Intake(connection, roster, replace(inputs, observations=sources))
        opened = open_engine(
            intake,
            request.conflicts,
            memory=request.memory,
            threads=request.threads,
            progress=progress,
        )
        with opened as engine:
            fleet = survey_fleet(engine)
            summary = None
            if request.output and results:
                found, summary = count_fleet(engine, fleet, request.range)
                with convert_write_errors(request.output):
                    write_results(results, found, find_extension(request.output))
            resolved = sharded.write_rows(engine, fleet) if sharded else None
        # The engine has freed its memory by now.
        if sharded and resolved:
            summary = summary or summarize(fleet, resolved, fleet.observed, None)
            manifest = sharded.build(
                fleet,
                resolved,
                list_stored_names(inputs.observations),
                processes=_count_processes(request.memory, request.threads),
                progress=progress,
            )
            summary = replace(summary, manifest=manifest)
    assert summary, "neither results nor a snapshot"  # noqa: S101 - the command checks it
    return summary


def _count_processes(memory: int | None, threads: int | None) -> int:
    """Return the number of shard-building processes, limited by cores and memory."""
    processes = threads or count_cores()
    return processes if memory is None else max(1, min(processes, memory // _BYTES_PER_PROCESS))


class Fleet(NamedTuple):
    """The public servers of a fleet, and the row counts so far.

    - `records`, `currents`: the records and the values of `currentPlayers`, in the order of
      `servers.ids`.
    - `fallbacks`: the number of `currents` that are missing in the records.
    - `rows`: the number of observations of these servers up to `as_of`.
    - `observed`: the number of servers with an observation.
    - `intake`: holds all other rows.
    """

    servers: Servers
    records: Sequence[ServerRecord]
    currents: Sequence[int]
    fallbacks: int
    as_of: int
    rows: int
    observed: int
    intake: Intake


def survey_fleet(engine: Engine) -> Fleet:
    """Read all rows, and find the servers of these rows and of the roster.

    Raises SourceError if a source is refused, no known server has an observation, or too many rows
    were rejected; and EngineError if the engine fails.
    """
    intake, roster = engine.intake, engine.intake.roster
    rank = partial(_rank, engine.conflicts)
    unusable: defaultdict[str, list[str]] = defaultdict(list)
    lasts: dict[int, Identified] = {}
    keys: dict[str, int] = {}
    rows = 0
    for row in engine.survey():
        key = roster[row.identifier]
        if reason := REJECT_REASONS.get(key):
            unusable[reason].append(row.identifier)
        elif key in roster.skip_reasons:
            intake.skipped[roster.skip_reasons[key]] += row.rows
        else:
            keys[row.identifier] = key
            rows += row.rows - row.late
            intake.skipped[AFTER_AS_OF] += row.late
            if row.last_at is not None:
                # A server can have several identifiers.
                lasts[key] = max(lasts.get(key, row), row, key=rank)
    for reason, names in unusable.items():
        engine.reject(names, reason)
    last = max((row.last_at or 0 for row in lasts.values()), default=None)
    as_of = refusals.check_rows(intake, last)
    # A server without a record needs an observation.
    roster.name_servers(lasts)
    ids = sorted(roster.server_keys)
    numbers = {roster.server_keys[server_id]: number for number, server_id in enumerate(ids)}
    records = [roster.get_record(server_id) for server_id in ids]
    last_players = {key: row.last_players for key, row in lasts.items()}
    return Fleet(
        servers=Servers(ids, {name: numbers[key] for name, key in keys.items() if key in numbers}),
        records=records,
        currents=[
            last_players.get(key) or 0 if record.players_current is None else record.players_current
            for key, record in zip(numbers, records, strict=True)
        ],
        fallbacks=sum(record.players_current is None for record in records),
        as_of=as_of,
        rows=rows,
        observed=len(lasts),
        intake=intake,
    )


def _rank(conflicts: Conflicts, row: Identified) -> tuple[int, int, int]:
    at, position, players = row[3:]
    assert at is not None and position is not None and players is not None  # noqa: S101, PT018
    return (at, -position, -players) if conflicts == "first" else (at, -players, -position)


def count_fleet(
    engine: Engine, fleet: Fleet, range: Range
) -> tuple[Iterator[ServerResult], FleetSummary]:
    """Compute the result of every server over a range that ends at the fleet's as-of time.

    Returns the results in the order of the ids, and the summary.

    Raises SourceError if a source has changed, and EngineError if the engine fails.
    """
    window = find_window(range, fleet.as_of)
    figures, resolved = engine.count(fleet.servers, window)
    observed = sum(each.observations for each in figures.values())
    if observed != resolved.kept or resolved.rows > fleet.rows:
        raise EngineError(
            f"the engine counted {observed:,} observations, but kept {resolved.kept:,} of"
            f" {resolved.rows:,} rows in the window and {fleet.rows:,} in all; please report this"
        )
    nothing = compute_statistics(())
    results = (
        build_result(record.id, record.cfx_id, current, range, figures.get(number, nothing))
        for number, (record, current) in enumerate(zip(fleet.records, fleet.currents, strict=True))
    )
    return results, summarize(fleet, resolved, len(figures), window.start)


def summarize(fleet: Fleet, resolved: Resolved, observed: int, start: int | None) -> FleetSummary:
    """Summarize the rows of a fleet.

    `observed` counts servers with an observation in the window.
    """
    intake = fleet.intake
    reasons = intake.rejects.list_reasons()
    return FleetSummary(
        read=fleet.rows + intake.skipped.total() + intake.rejects.malformed,
        kept=resolved.kept,
        repeated=resolved.repeated,
        conflicting=resolved.conflicting,
        reject_reasons={reason.text: reason.rows for reason in reasons},
        skipped=+intake.skipped,
        early=fleet.rows - resolved.rows,
        conflict=resolved.conflict,
        remedy=refusals.find_remedy(reasons),
        servers=len(fleet.records),
        observed=observed,
        withheld=len(intake.roster.withheld),
        completed=count_completed(fleet.records),
        fallbacks=fleet.fallbacks,
        start=start,
        as_of=fleet.as_of,
        warnings=(*intake.warnings, *intake.roster.describe_unknown()),
    )


_ROWS = "rows"
"""The folder of the resolved rows. It is removed when all shards are built."""

_PASSES = 2
"""Progress reports per row: one when read, one when stored."""


class ShardedDraft(NamedTuple):
    """A folder to fill with a fleet's shards, its name for messages, and the number of shards."""

    folder: str
    title: str
    shards: int

    def write_rows(self, engine: Engine, fleet: Fleet) -> Resolved:
        """Write the observations of the fleet by shard. The engine is not needed afterwards.

        Raises SourceError if a source has changed, and EngineError if the engine fails.
        """
        shards = [find_shard(server_id, self.shards) for server_id in fleet.servers.ids]
        servers = fleet.servers._replace(shards=shards)
        return engine.write_rows(servers, fleet.as_of, os.path.join(self.folder, _ROWS))

    def build(
        self,
        fleet: Fleet,
        resolved: Resolved,
        sources: Sequence[str],
        *,
        processes: int,
        progress: Progress,
    ) -> Manifest:
        """Build the shards from their rows, write the manifest, and return it.

        `sources`: the source names to store in the shards and the manifest.

        Raises OutputError if a file can't be written, and EngineError if a process fails.
        """
        built: dict[int, FileRow] = {}
        done = 0

        def report(rows: int) -> None:
            nonlocal done
            done += rows
            share = done / (_PASSES * resolved.kept or 1)
            progress("building", min(1, share), f"{len(built)} of {self.shards} shards")

        report(0)
        try:
            shards = self._iter_shards(fleet, sources)
            for shard, row in do_jobs(build_shard, shards, processes=processes, report=report):
                built[shard.number] = row
                report(0)
        except WorkerError as error:
            raise EngineError(
                f"{self.title}: {error}; if memory ran out, use more --shards or fewer --threads"
            ) from None
        rows = [built[number] for number in range(self.shards)]
        manifest = _build_manifest(fleet, resolved, sources, rows)
        if manifest.observations != resolved.kept:
            raise EngineError(
                f"{self.title}: the engine kept {resolved.kept:,} observations, but the shards"
                f" have {manifest.observations:,}; please report this"
            )
        with convert_write_errors(self.title), suppress(FileNotFoundError):
            shutil.rmtree(os.path.join(self.folder, _ROWS))
        path = os.path.join(self.folder, MANIFEST)
        write_file(path, [manifest.to_json(), b"\n"], title=self.title)
        return manifest

    def _iter_shards(self, fleet: Fleet, sources: Sequence[str]) -> Iterator[Shard]:
        members: defaultdict[int, list[ServerRecord]] = defaultdict(list)
        for record in fleet.records:
            members[find_shard(record.id, self.shards)].append(record)
        for shard in range(self.shards):
            name = name_shard(shard)
            yield Shard(
                number=shard,
                path=os.path.join(self.folder, name),
                title=os.path.join(self.title, name),
                records=members[shard],
                rows=os.path.join(self.folder, _ROWS, f"shard={shard}"),
                as_of=fleet.as_of,
                sources=sources,
            )


def _build_manifest(
    fleet: Fleet, resolved: Resolved, sources: Sequence[str], rows: Sequence[FileRow]
) -> Manifest:
    """Return the manifest of shards. `rows` are the rows of their files, in order."""
    roots = [row.root.hex() for row in rows]
    first_observed_at, last_observed_at = find_observed_span(rows)
    manifest = Manifest(
        as_of=fleet.as_of,
        root=compute_shards_root(fleet.as_of, roots),
        servers=sum(row.server_count for row in rows),
        observations=sum(row.observation_count for row in rows),
        first_observed_at=first_observed_at,
        last_observed_at=last_observed_at,
        sources=tuple(sources),
        repeated=resolved.repeated,
        conflicting=resolved.conflicting,
        rejected=fleet.intake.rejects.malformed,
        shards=tuple(
            ManifestShard(
                file=name_shard(number),
                root=row.root.hex(),
                servers=row.server_count,
                observations=row.observation_count,
            )
            for number, row in enumerate(rows)
        ),
    )
    return seal_manifest(manifest)
