"""Write a file completely or not at all."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from srvstat.contract.errors import OutputError, UsageError
from srvstat.files.drafts import close_descriptor, create_draft, sweep_drafts
from srvstat.files.errors import convert_write_errors
from srvstat.files.identity import Identity, identify_file
from srvstat.files.reading import STDIN
from srvstat.files.streams import find_descriptor_path

_NO_HARD_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class Target(NamedTuple):
    """The path of a file without symbolic links, and its status; None if it does not exist."""

    path: str
    replaced: os.stat_result | None


@contextmanager
def atomic_write(path: str, *, overwrite: bool, replaced: Identity = None) -> Iterator[str]:
    """Yield the path of a new file to fill, and rename it to `path` if the block succeeds.

    The new file is in the target's directory. It is flushed to the disk and renamed, and then the
    directory is flushed, so the target is always the complete old or the complete new file. Without
    `overwrite` an existing file is never replaced, even one that appears during the block. A
    symbolic link stays and its target is replaced. Files that killed builds of the same target left
    behind are removed first. The new file has the mode, and if permitted the group, of the replaced
    file.

    With the identity of the file to replace, any other file there is never replaced.

    Raises UsageError if the target may not be replaced, OutputError if it can't be written.
    """
    target, status = check_target(path, overwrite=overwrite)
    with ExitStack() as stack:
        with convert_write_errors(path):
            # Opened first: a directory that can't be read can't be flushed at the end either.
            directory = _open_directory(os.path.dirname(target), stack)
            sweep_drafts(target)
            # The replaced file may be private, so its draft is too.
            mode = 0o666 if status is None else stat.S_IRUSR | stat.S_IWUSR
            draft = stack.enter_context(create_draft(target, mode))
        yield draft.path
        with convert_write_errors(path):
            if status is not None:
                _copy_rights(draft.descriptor, status)
            # The first descriptor of a file reports every failed write since it was opened.
            os.fsync(draft.descriptor)
            if replaced not in (None, identify_file(target)):
                raise OutputError(f"{path}: was replaced or changed meanwhile; try again")
            if overwrite:
                os.replace(draft.path, target)
            else:
                _link(path, draft.path, target)
            os.fsync(directory)


def check_name(option: str, path: str) -> str:
    """Check the name of an output, and return its real path.

    Raises UsageError for a name that no file can have, OutputError.
    """
    if not path:
        raise UsageError(f"{option}: the name is empty; name a file")
    if path.endswith(os.sep):
        raise UsageError(f"{option} {path}: names a directory; name a file")
    if path == STDIN:
        raise UsageError(f"{option}: - is not a file; name a file")
    with convert_write_errors(path):
        return os.path.realpath(path)


def check_target(path: str, *, overwrite: bool) -> Target:
    """Return where `atomic_write` would write, if it may write there.

    Raises UsageError if the target may not be replaced, OutputError.
    """
    if find_descriptor_path(path):
        raise UsageError(f"{path}: an open descriptor, not a file name; name a file")
    with convert_write_errors(path):
        target = os.path.realpath(path)
        try:
            status = os.stat(target)
        except FileNotFoundError:
            return Target(target, None)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: not a regular file, so it can't be replaced")
    if not overwrite:
        raise _build_exists_error(path)
    return Target(target, status)


def _copy_rights(descriptor: int, replaced: os.stat_result) -> None:
    """Set the mode and, if permitted, the group of the replaced file."""
    mode = replaced.st_mode & 0o777
    if os.fstat(descriptor).st_gid != replaced.st_gid:
        try:
            os.fchown(descriptor, -1, replaced.st_gid)
        except OSError:  # pragma: no cover - tests may run as root, who may set any group
            # Another group gets no more rights than all other users.
            mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    os.fchmod(descriptor, mode)


def _open_directory(directory: str, stack: ExitStack) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(close_descriptor, descriptor)
    return descriptor


def _link(path: str, draft: str, target: str) -> None:
    """Link a draft to its final name. A rename would replace a file that has the name."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise _build_exists_error(path) from None
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        raise OutputError(
            f"{path}: this file system has no hard links, which protect an existing file;"
            " --overwrite works without them"
        ) from None


def _build_exists_error(path: str) -> UsageError:
    return UsageError(f"{path}: exists; --overwrite replaces it")
