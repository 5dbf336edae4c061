"""Identify files, to detect that the one at a path was replaced or changed."""

import os

Identity = tuple[int, ...] | None
"""Device, inode, size and modification time in nanoseconds; None for a missing file."""


def identify_file(path: str) -> Identity:
    """Return the identity of the file at a path."""
    try:
        return compute_identity(os.stat(path))
    except OSError:
        return None


def compute_identity(status: os.stat_result) -> tuple[int, ...]:
    """Return the identity of a file from its status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
