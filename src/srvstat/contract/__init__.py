"""The published API: errors, ranges, times, requests, responses and their exact bytes."""

import os

CONTRACT_VERSION = "1.0.0"

__version__ = "1.0.0.dev0"


def read_package_file(path: str) -> bytes:
    """Return the content of a file in the package srvstat, such as `snapshot/schema.sql`.

    The package may be inside a zip archive, because Spark sends it to its executors as an archive.
    """
    # Importing importlib.resources or pkgutil would take longer than reading the file.
    package = os.path.dirname(os.path.dirname(__file__))
    path = os.path.join(package, *path.split("/"))
    data: bytes = __loader__.get_data(path)  # type: ignore[name-defined]  # every module has one
    return data
