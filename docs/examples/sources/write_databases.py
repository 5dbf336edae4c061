"""Write the sources of docs/how-to/import-data.md that are not text to the current directory."""

import sqlite3
from contextlib import closing

import duckdb

TIMES = range(1_772_359_200_000, 1_772_370_000_000, 3_600_000)


def write_minetrack() -> None:
    """Write a database of Minetrack: a failed ping has no player count."""
    with closing(sqlite3.connect("database.sql")) as connection, connection:
        connection.execute(
            "CREATE TABLE pings (timestamp BIGINT NOT NULL, ip TINYTEXT, playerCount MEDIUMINT)"
        )
        for at, lobby, arena in zip(TIMES, (41, 44, 47), (12, None, 15), strict=True):
            pings = [(at, "lobby.example.net", lobby), (at, "pvp.example.net:25566", arena)]
            connection.executemany("INSERT INTO pings VALUES (?, ?, ?)", pings)


def write_bot() -> None:
    """Write a database such as a bot has: times are Unix seconds."""
    with closing(sqlite3.connect("bot.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE settings (key TEXT, value TEXT)")
        connection.execute("CREATE TABLE polls (polled_at INTEGER, room TEXT, players INTEGER)")
        for at, lobby, arena in zip(TIMES, (41, 44, 47), (12, None, 15), strict=True):
            polls = [(at // 1000, "Main Lobby", lobby), (at // 1000, "PvP Arena", arena)]
            connection.executemany("INSERT INTO polls VALUES (?, ?, ?)", polls)


def write_tables() -> None:
    """Write a DuckDB database, a Parquet file, and a folder of Parquet files by server."""
    with duckdb.connect("games.duckdb") as connection:
        connection.execute("""
            CREATE TABLE polls AS
            SELECT to_timestamp(timestamp) AS polled_at, name, online
            FROM 'polls.csv' WHERE online IS NOT NULL ORDER BY name, polled_at
        """)
        connection.execute("COPY polls TO 'polls.parquet'")
        connection.execute("COPY polls TO 'polls-by-name' (FORMAT parquet, PARTITION_BY name)")


if __name__ == "__main__":
    write_minetrack()
    write_bot()
    write_tables()
