"""The Python API, whose names the package `srvstat` loads."""
