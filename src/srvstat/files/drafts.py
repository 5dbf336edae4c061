"""Drafts: files beside their target, each filled by one build and locked while that build lives."""

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_NAME_CHARACTERS = 50
"""How much of its target's name a draft bears: 200 bytes at most, so that it has room for more."""


_MAX_TRIES = 100
"""How many drafts in a row another build may sweep before they are locked."""


class Draft(NamedTuple):
    """A file to fill, and a descriptor of it that holds its lock."""

    path: str
    descriptor: int


@contextmanager
def create_draft(target: str, mode: int = 0o666) -> Iterator[Draft]:
    """Hand out an empty file beside a target. When the block ends, nothing has its name any more.

    Its mode is `mode` without what the umask forbids.

    Raises OSError.
    """
    for _ in range(_MAX_TRIES):
        path = f"{_beginning(target)}{secrets.token_hex(8)}.tmp"
        descriptor = None
        try:
            # O_EXCL never follows what someone else put there.
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
            descriptor = os.open(path, flags, mode)
            if _is_ours(path, descriptor):
                yield Draft(path, descriptor)
                return
        finally:
            # The name is of 64 random bits, so what has it now is this draft or nothing.
            with suppress(OSError):
                os.unlink(path)
            if descriptor is not None:  # pragma: no branch - it is None after a signal
                close(descriptor)
    raise OSError(errno.ENOLCK, "no file can be locked beside it")  # pragma: no cover - an odd one


def close(descriptor: int) -> None:
    """Close a descriptor. What could not be written, flushing it has told."""
    with suppress(OSError):
        os.close(descriptor)


def sweep_drafts(target: str) -> None:
    """Remove the drafts of builds that were killed: those that nobody has locked.

    Nothing that goes wrong here stops a build; what can't be removed stays.
    """
    directory, beginning = os.path.split(_beginning(target))
    draft = re.compile(f"{re.escape(beginning)}[0-9a-f]{{16}}\\.tmp")
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if draft.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unlocked(entry.path)


def _beginning(target: str) -> str:
    """Return what the drafts of a target, and unless it is long of no other, begin with."""
    directory, name = os.path.split(target)
    return os.path.join(directory, f".{name[:_NAME_CHARACTERS]}.srvstat-")


def _is_ours(path: str, descriptor: int) -> bool:
    """Lock a draft, and say whether it is still there: another build may just have swept it."""
    try:
        _lock(descriptor)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks, where nothing is ever swept.
        return True
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    return False


def _remove_unlocked(path: str) -> None:
    # For writing, without which NFS locks nothing.
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _lock(descriptor)
        os.unlink(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock a file until its descriptor is closed, by the system too when the process is killed."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
