"""Find the observations that stand at instants at which some differ (D16)."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from srvstat.fleet.conflicts import Conflict
from srvstat.fleet.counts import ORDER_BITS, Conflicts

_INSTANT = ["server", "at"]


class Contest:
    """The observations of all servers and instants at which some differ.

    Its input has the columns server, at, players and position. `standing` has server, at, and
    `first` with the players and the position of the one that stands.
    """

    def __init__(self, rows: DataFrame, conflicts: Conflicts) -> None:
        self._rows = rows.select(*_INSTANT, "players", "position")
        self._conflicts = conflicts
        first = sql.min(order_rows(conflicts)).alias("first")
        self.standing = self._rows.groupBy(*_INSTANT).agg(first)

    def count_different(self) -> int:
        """Return the number of observations that differ from the one that stands."""
        return int(self._select_different().count())

    def find_unordered(self, ids: Sequence[str]) -> Conflict | None:
        """Return a conflict of which no observation is the first, if there is one.

        `ids` are those of servers, by number.
        """
        if self._conflicts == "lowest":
            return None
        # Only rows of a source without an order have place 0.
        has_no_place = sql.col("position").bitwiseAND((1 << ORDER_BITS) - 1) == 0
        return self._find_one(
            ids, has_no_place & (sql.col("position") == sql.col("first.position"))
        )

    def find_first(self, ids: Sequence[str]) -> Conflict | None:
        """Return the first conflict, by server, instant and position."""
        return self._find_one(ids, sql.lit(True))

    def _find_one(self, ids: Sequence[str], condition: Column) -> Conflict | None:
        found = (
            self._select_different()
            .where(condition)
            .select(
                *_INSTANT,
                "position",
                "players",
                sql.col("first.position").alias("first_position"),
                sql.col("first.players").alias("first_players"),
            )
        )
        for row in found.orderBy(*_INSTANT, "position", "players").limit(1).collect():
            server, *values = row
            return Conflict(ids[server], *values)
        return None

    def _select_different(self) -> DataFrame:
        different = self._rows.join(self.standing, _INSTANT)
        return different.where(sql.col("players") != sql.col("first.players"))


def select_contested(rows: DataFrame, counted: DataFrame) -> DataFrame:
    """Return the rows at contested instants."""
    contested = counted.select("server", sql.col("contested").alias("at"))
    return rows.join(contested.where(sql.isnotnull("at")), _INSTANT, "left_semi")


def order_rows(conflicts: Conflicts) -> Column:
    """Return the order of unequal observations, of which the first one stands, as a struct."""
    if conflicts == "lowest":
        return sql.struct("players", "position")
    return sql.struct("position", "players")
