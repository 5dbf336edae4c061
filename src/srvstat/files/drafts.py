"""Create drafts: files and folders next to their target, locked while a command fills them."""

import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import NamedTuple

_NAME_CHARACTERS = 50
"""Characters of the target's name in a draft's name: at most 200 of the 255 bytes of a name."""

_MAX_TRIES = 100
"""Attempts to create a draft, which other builds may sweep before it is locked."""


class Draft(NamedTuple):
    """A file or folder to fill, and the descriptor that holds its lock."""

    path: str
    descriptor: int


def create_draft(target: str, mode: int = 0o666) -> AbstractContextManager[Draft]:
    """Create an empty file next to a target; its name is removed when the block ends.

    The umask applies to `mode`.

    Raises OSError.
    """
    # O_EXCL never follows an existing link.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    return _create(target, lambda path: os.open(path, flags, mode), os.unlink)


def create_draft_folder(target: str) -> AbstractContextManager[Draft]:
    """Create an empty folder next to a target; it is removed with its files when the block ends.

    Raises OSError.
    """
    return _create(target, _create_folder, shutil.rmtree)


@contextmanager
def _create(
    target: str, create: Callable[[str], int], remove: Callable[[str], None]
) -> Iterator[Draft]:
    for _ in range(_MAX_TRIES):
        path = f"{_build_prefix(target)}{secrets.token_hex(8)}.tmp"
        descriptor = None
        try:
            descriptor = create(path)
            if _lock_draft(path, descriptor):
                yield Draft(path, descriptor)
                return
        finally:
            # The name has 64 random bits, so it can only be this draft.
            with suppress(OSError):
                remove(path)
            if descriptor is not None:  # pragma: no branch - it is None after a signal
                close_descriptor(descriptor)
    raise OSError(errno.ENOLCK, "no draft can be locked")  # pragma: no cover - needs rare timing


def _create_folder(path: str) -> int:
    os.mkdir(path)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def close_descriptor(descriptor: int) -> None:
    """Close a descriptor and ignore errors: flushing has reported failed writes."""
    with suppress(OSError):
        os.close(descriptor)


def sweep_drafts(target: str) -> None:
    """Remove the unlocked drafts of a file, which killed builds left behind.

    Errors are ignored: a draft that can't be removed stays.
    """
    for entry in _list_drafts(target):
        with suppress(OSError):
            if entry.is_file(follow_symlinks=False):
                # NFS locks only files that are open for writing.
                _remove_unlocked(entry.path, os.O_RDWR | os.O_NONBLOCK, os.unlink)


def sweep_draft_folders(target: str) -> None:
    """Remove the unlocked drafts of a folder, as `sweep_drafts` does those of a file."""
    for entry in _list_drafts(target):
        with suppress(OSError):
            _remove_unlocked(entry.path, os.O_RDONLY | os.O_DIRECTORY, shutil.rmtree)


def _list_drafts(target: str) -> list[os.DirEntry[str]]:
    directory, prefix = os.path.split(_build_prefix(target))
    draft = re.compile(f"{re.escape(prefix)}[0-9a-f]{{16}}\\.tmp")
    with suppress(OSError), os.scandir(directory) as entries:
        return [entry for entry in entries if draft.fullmatch(entry.name)]
    return []


def _build_prefix(target: str) -> str:
    """Return the prefix of a target's drafts; only targets with long names may share one."""
    directory, name = os.path.split(target)
    return os.path.join(directory, f".{name[:_NAME_CHARACTERS]}.srvstat-")


def _lock_draft(path: str, descriptor: int) -> bool:
    """Lock a new draft; return False if another build has locked or swept it."""
    try:
        _lock(descriptor)
    except BlockingIOError:
        return False
    except OSError:
        # Drafts are never swept on a file system without locks.
        return True
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    return False


def _remove_unlocked(path: str, flags: int, remove: Callable[[str], None]) -> None:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _lock(descriptor)
        remove(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock a file until its descriptor is closed or the process ends."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
