"""Write the results of all servers to a file of Parquet or NDJSON."""

import os
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from srvstat.contract.errors import UsageError
from srvstat.contract.responses import ServerResult

if TYPE_CHECKING:
    import pyarrow as pa

RESULT_EXTENSIONS = (".ndjson", ".jsonl", ".parquet")

_ROWS_PER_GROUP = 50_000
"""The results in memory while a Parquet file is written."""


def find_extension(path: str) -> str:
    """Return the extension of a file of results, in lower case.

    Raises UsageError for the extension of another format.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension not in RESULT_EXTENSIONS:
        raise UsageError(
            f"-o {path}: unknown format; end the name in {', '.join(RESULT_EXTENSIONS)}"
        )
    return extension


def write_results(path: str, results: Iterable[ServerResult], extension: str) -> None:
    """Write results to a file in the format of an extension, one of RESULT_EXTENSIONS.

    A line of NDJSON has the bytes of the result in an answer of `compare`.

    Raises OSError.
    """
    if extension == ".parquet":
        _write_parquet(path, results)
        return
    with open(path, "wb") as file:
        file.writelines(f"{result.encode_once()}\n".encode() for result in results)


def build_schema() -> "pa.Schema":
    """Return the columns of a Parquet file of results."""
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
    # The command checks the name of the file without the libraries of the extra `bulk`.
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
