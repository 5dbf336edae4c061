"""Write the results of all servers to a file."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from srvstat.contract.responses import ServerResult

SCHEMA = pa.schema(
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
"""The columns of a Parquet file: the fields of ServerResult, with those of its growth."""

_ROWS_PER_GROUP = 50_000
"""The results in memory while a file is written."""


Results = Iterable[ServerResult]


def write_results(path: str, results: Results, extension: str) -> None:
    """Write results to a file in the format of an extension, one of RESULT_EXTENSIONS.

    Raises OSError.
    """
    if extension == ".parquet":
        _write_parquet(path, results)
    else:
        _write_ndjson(path, results)


def _write_ndjson(path: str, results: Results) -> None:
    """Write one result per line, with the bytes that it has in an answer of `compare`."""
    with open(path, "wb") as file:
        file.writelines(f"{result.encode_once()}\n".encode() for result in results)


def _write_parquet(path: str, results: Results) -> None:
    """Write one row per result, with the columns of SCHEMA."""
    rows = map(_build_row, results)
    with open(path, "wb") as file, ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        while group := list(islice(rows, _ROWS_PER_GROUP)):
            writer.write_batch(pa.RecordBatch.from_pylist(group, SCHEMA))


def _build_row(result: ServerResult) -> dict[str, Any]:
    growth = result.growth
    return {
        **result.model_dump(exclude={"growth"}),
        "growthPlayers": growth.players,
        "growthPercentage": growth.percentage,
    }
