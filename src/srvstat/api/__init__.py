"""Implement the Python API. The package `srvstat` loads the names on first use."""
