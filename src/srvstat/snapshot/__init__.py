"""The snapshot: one SQLite file with the servers and their observations."""
