"""Create DataFrames from tables of the driver, and describe their columns."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

_TYPES = {pa.int32(): "INT", pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.string(): "STRING"}


def format_schema(schema: pa.Schema) -> str:
    """Return a schema as Spark's functions take it."""
    return ", ".join(f"{quote_name(field.name)} {_TYPES[field.type]}" for field in schema)


def create_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a table of the driver as a DataFrame."""
    # With a schema, Spark Connect accepts a table without rows, too.
    return session.createDataFrame(table, format_schema(table.schema))


def quote_name(name: str) -> str:
    """Return the name of a column in which no character has a meaning."""
    return "`{}`".format(name.replace("`", "``"))
