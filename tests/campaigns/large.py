"""Build, update, verify and damage a snapshot; in the long form, one of more than 4 GiB."""

import os
import random
import tempfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

import srvstat
from campaigns.build_directory import START
from campaigns.campaign import Campaign, Result
from srvstat.cli.app import main

_IDS = [f"srv-{number:02}" for number in range(50)]
_ROWS_PER_BATCH = 200
"""Of each server."""
_MAX_PLAYERS = 1 << 50
"""So large that a count takes eight bytes."""
_DAMAGED = 3
_FLIPS = 8
"""One alone could be in the unused rest of a page."""
_SCHEMA = pa.schema({"serverId": pa.string(), "observedAt": pa.int64(), "players": pa.int64()})


def run(seed: int, count: int) -> Result:
    """Write `count` thousand observations; build from most of them, and update with the rest."""
    sums = [0] * len(_IDS)
    batches = count * 1_000 // (len(_IDS) * _ROWS_PER_BATCH)
    with tempfile.TemporaryDirectory() as directory:
        drawn = _draw_batches(np.random.default_rng(seed), batches, sums)
        names = [os.path.join(directory, name) for name in ("first.parquet", "second.parquet")]
        for name, part in zip(names, (batches * 3 // 4, batches), strict=True):
            with ParquetWriter(name, _SCHEMA, compression="zstd") as writer:
                for _, batch in zip(range(part), drawn, strict=False):
                    writer.write_batch(batch)
        path = os.path.join(directory, "large.db")
        verify = ["snapshot", "verify", path, "--json"]
        commands = [
            ["snapshot", "build", path, names[0], "--quiet"],
            ["snapshot", "update", path, "--observations", names[1], "--quiet"],
            verify,
        ]
        failures = [f"{command[:2]}: an error" for command in commands if main(command)]
        with srvstat.open_snapshot(path) as snapshot:
            servers = {str(one.server_id): one for one in snapshot.stats(range="all").servers}
        rows = batches * _ROWS_PER_BATCH
        for name, total in zip(_IDS, sums, strict=True):
            found = servers[name].sample_count, servers[name].average_players
            if found != (rows, total / rows):
                failures.append(f"{name}: {found}, not {rows}, {total / rows}")
        size = os.path.getsize(path)
        rng = random.Random(seed)
        with open(path, "r+b") as file:
            for _ in range(_FLIPS):
                at = rng.randrange(size * 7 // 8, size)
                byte = os.pread(file.fileno(), 1, at)[0]
                os.pwrite(file.fileno(), bytes([byte ^ 1]), at)
        if main(verify) != _DAMAGED:
            failures.append("flipped bits were not found")
    return Result(count, {f"thousand observations, {size / 2**30:.1f} GiB": count}, tuple(failures))


def _draw_batches(
    rng: np.random.Generator, batches: int, sums: list[int]
) -> Iterator[pa.RecordBatch]:
    """Draw rows of all servers, and add their players to the sums."""
    at = np.full((len(_IDS), 1), START)
    shape = len(_IDS), _ROWS_PER_BATCH
    names = pa.array(np.repeat(_IDS, _ROWS_PER_BATCH))
    for _ in range(batches):
        instants = at + np.cumsum(rng.integers(1, 1_000, shape), axis=1)
        at = instants[:, -1:]
        players = rng.integers(0, _MAX_PLAYERS, shape)
        sums[:] = [was + sum(more) for was, more in zip(sums, players.tolist(), strict=True)]
        columns = [names, pa.array(instants.ravel()), pa.array(players.ravel())]
        yield pa.record_batch(columns, schema=_SCHEMA)


CAMPAIGN = Campaign(
    name="large",
    promise="a file of more than 4 GiB is built, updated and verified, has the figures of its"
    " sources, and flipped bits at its end are found",
    run=run,
    short=20,
    long=350_000,
    unit="thousand observations",
)
