"""Write files and folders atomically, and lines to streams."""

import errno
import fcntl
import os
import re
import secrets
import select
import shutil
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import OutputError, SnapshotError, UsageError
from srvstat.files.paths import Identity, convert_errors, convert_write_errors, identify_file
from srvstat.files.reading import STDIN

_NAME_CHARACTERS = 50
"""The number of characters of the target's name in a draft's name: at most 200 of the 255 bytes of
a file name.
"""

_MAX_TRIES = 100
"""The maximum number of attempts to create a draft. Another build may sweep a draft before it is
locked.
"""


class Draft(NamedTuple):
    """A file or folder to fill, and the descriptor that holds its lock."""

    path: str
    descriptor: int


@contextmanager
def _create_draft(target: str, mode: int = 0o666, *, is_folder: bool = False) -> Iterator[Draft]:
    """Yield an empty file or folder next to a target, and remove it when the block ends.

    First removes the drafts that killed commands left behind. The umask applies to `mode`.

    Raises OSError if the draft can't be created.
    """
    remove = shutil.rmtree if is_folder else os.unlink
    _sweep_drafts(target, is_folder=is_folder)
    for _ in range(_MAX_TRIES):
        path = f"{_build_prefix(target)}{secrets.token_hex(8)}.tmp"
        descriptor = None
        try:
            if is_folder:
                os.mkdir(path)
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            else:
                # O_EXCL never follows an existing link.
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
            if _lock_draft(path, descriptor):
                yield Draft(path, descriptor)
                return
        finally:
            # The name has 64 random bits, so it can only be this draft.
            with suppress(OSError):
                remove(path)
            if descriptor is not None:  # pragma: no branch - it is None after a signal
                _close(descriptor)
    raise OSError(errno.ENOLCK, "no draft can be locked")  # pragma: no cover - needs rare timing


def _close(descriptor: int) -> None:
    """Close a descriptor and ignore errors, because flushing has already reported failed writes."""
    with suppress(OSError):
        os.close(descriptor)


def _sweep_drafts(target: str, *, is_folder: bool = False) -> None:
    """Remove the unlocked drafts of a file or folder, which killed commands left behind.

    Ignores errors: a draft that can't be removed remains.
    """
    directory, prefix = os.path.split(_build_prefix(target))
    draft = re.compile(f"{re.escape(prefix)}[0-9a-f]{{16}}\\.tmp")
    # NFS locks only files that are open for writing.
    flags = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR | os.O_NONBLOCK
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            is_kind = entry.is_dir if is_folder else entry.is_file
            if draft.fullmatch(entry.name) and is_kind(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unlocked(entry.path, flags, shutil.rmtree if is_folder else os.unlink)


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
        # Without locks, this file system's drafts are never swept.
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


_NO_HARD_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class Destination(NamedTuple):
    """The path of a file without symbolic links, and its status, or None if it does not exist."""

    path: str
    replaced: os.stat_result | None


@contextmanager
def atomic_write(path: str, *, overwrite: bool, replaced: Identity = None) -> Iterator[str]:
    """Yield the path of a new file to fill, and rename it to `path` if the block succeeds.

    - The target is always the complete old or the complete new file: the new file is created in the
      target's directory, flushed to the disk and renamed, and then the directory is flushed.
    - Without `overwrite`, an existing file is never replaced, even if it appears during the block.
    - `replaced`: the identity of the file to replace; any other file is never replaced.
    - If `path` is a symbolic link, the link remains and its target is replaced.
    - The new file gets the mode of the replaced file and, if permitted, its owner and group. Warns
      if the owner changes.
    - Files that killed builds of the same target left behind are removed first.

    Raises UsageError if the target may not be replaced, and OutputError if it can't be written.
    """
    target, status = check_destination(path, overwrite=overwrite)
    with ExitStack() as stack:
        with convert_write_errors(path):
            # Opened first, because a directory that can't be read can't be flushed at the end
            # either.
            folder = stack.enter_context(_open_folder(os.path.dirname(target)))
            # The replaced file may be private, so its draft is too.
            mode = 0o666 if status is None else stat.S_IRUSR | stat.S_IWUSR
            draft = stack.enter_context(_create_draft(target, mode))
        yield draft.path
        with convert_write_errors(path):
            if status is not None:
                _copy_rights(path, draft.descriptor, status)
            # The first descriptor of a file reports every failed write since it was opened.
            os.fsync(draft.descriptor)
            if replaced not in (None, identify_file(target)):
                raise OutputError(f"{path}: changed during the update; try again")
            if overwrite:
                os.replace(draft.path, target)
            else:
                _link(path, draft.path, target)
            os.fsync(folder)


def write_atomically(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write all bytes to a file atomically.

    Raises UsageError if the file may not be replaced, and OutputError if it can't be written.
    """
    with (
        atomic_write(path, overwrite=overwrite) as draft,
        convert_write_errors(path),
        open(draft, "wb") as file,
    ):
        file.write(data)


def check_name(option: str, path: str) -> str:
    """Check the name of an output, and return its real path.

    Raises UsageError for a name that no file can have, and OutputError for a system error.
    """
    if not path:
        raise UsageError(f"{option}: empty; give a file name")
    if path.endswith(os.sep):
        raise UsageError(f"{option} {path}: is a directory; give a file name")
    if path == STDIN:
        raise UsageError(f"{option}: standard output is not supported; give a file name")
    with convert_write_errors(path):
        return os.path.realpath(path)


def check_destination(path: str, *, overwrite: bool) -> Destination:
    """Return the destination to which `atomic_write` would write.

    Raises UsageError if the target may not be replaced, and OutputError if its folder is missing or
    for a system error.
    """
    if find_descriptor_path(path):
        raise UsageError(f"{path}: is a file descriptor; give a file name")
    with convert_write_errors(path):
        target = os.path.realpath(path)
        try:
            status = os.stat(target)
        except FileNotFoundError:
            if not os.path.lexists(os.path.dirname(target)):
                raise OutputError(f"{path}: the folder does not exist; create it first") from None
            return Destination(target, None)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: not a regular file, so it can't be replaced")
    if not overwrite:
        raise _build_exists_error(path)
    return Destination(target, status)


def _copy_rights(path: str, descriptor: int, replaced: os.stat_result) -> None:
    """Set the mode and, if permitted, the owner and the group of the replaced file."""
    mode = replaced.st_mode & 0o777
    for owner in (replaced.st_uid, -1):
        with suppress(OSError):
            os.fchown(descriptor, owner, replaced.st_gid)
            break
    status = os.fstat(descriptor)
    if (
        status.st_gid != replaced.st_gid
    ):  # pragma: no cover - tests may run as root, who may set any
        # The other group gets no more rights than all other users.
        mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    if status.st_uid != replaced.st_uid:  # pragma: no cover - likewise
        warnings.warn(
            f"{path}: belongs to user {status.st_uid} now, not to user {replaced.st_uid}; a service"
            f" of that user may be unable to read it: run chown {replaced.st_uid}",
            stacklevel=2,
        )
    os.fchmod(descriptor, mode)


@contextmanager
def _open_folder(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        _close(descriptor)


def _link(path: str, draft: str, target: str) -> None:
    """Link a draft to its final name. A rename would replace an existing file."""
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
    return UsageError(f"{path}: already exists; add --overwrite to replace it")


_EXISTS = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


@contextmanager
def atomic_folder(path: str, option: str = "-o") -> Iterator[str]:
    """Yield the path of a new folder to fill, and rename it to `path` if the block succeeds.

    The block must flush each file, as `write_file` does. `option` names the path in messages. First
    removes the folders that killed commands with the same target left behind.

    Raises UsageError if the target exists, and OutputError if it can't be written.
    """
    target = check_new_folder(option, path)
    with ExitStack() as stack:
        with convert_write_errors(path):
            draft = stack.enter_context(_create_draft(target, is_folder=True))
        yield draft.path
        with convert_write_errors(path):
            for folder, _, _ in os.walk(draft.path):
                _flush_folder(folder)
            _rename(path, draft.path, target)
            _flush_folder(os.path.dirname(target))


def check_new_folder(option: str, path: str) -> str:
    """Check the name of a folder to write, and return its real path.

    Raises UsageError if it exists or is not a valid name, and OutputError for a system error.
    """
    target = check_name(option, path.rstrip(os.sep) or path)
    if os.path.lexists(target):
        raise _build_folder_exists_error(path)
    return target


def write_file(path: str, pieces: Iterable[bytes], *, title: str) -> None:
    """Write a new file and flush it to the disk; create its folder if it is missing.

    Raises OutputError, which names `title`, if it can't be written.
    """
    with convert_write_errors(title):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())


def _rename(path: str, draft: str, target: str) -> None:
    try:
        os.rename(draft, target)
    except OSError as error:
        if error.errno in _EXISTS:
            raise _build_folder_exists_error(path) from None
        raise


def _flush_folder(path: str) -> None:
    with _open_folder(path) as descriptor:
        os.fsync(descriptor)


def _build_folder_exists_error(path: str) -> UsageError:
    return UsageError(f"{path}: already exists; choose a new folder")


_BYTES_PER_CALL = 1 << 28
"""The maximum number of bytes per system call, so that a copy can be interrupted within a fraction
of a second.
"""

_BYTES_PER_READ = 1 << 20


@contextmanager
def lock_file(path: str) -> Iterator[int]:
    """Lock the file at a path while the block runs, and yield a descriptor to read it.

    Does not lock on a file system without locks.

    Raises SnapshotError if the file can't be opened, and OutputError if another process holds the
    lock.
    """
    with convert_errors(path, SnapshotError, remedy="build one with `srvstat snapshot build`"):
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        try:
            _lock(descriptor)
        except BlockingIOError:
            raise OutputError(
                f"{path}: another update of it is running; try again when that has ended"
            ) from None
        except OSError:
            pass  # NFS locks only files that are open for writing
        yield descriptor
    finally:
        os.close(descriptor)


def copy_file(path: str, source: int, target: str) -> None:
    """Copy an open file to an existing, empty file. Raises OutputError, which names `path`."""
    with convert_write_errors(path), open(target, "r+b", 0) as file:
        position = 0
        while length := _copy_some(source, file.fileno(), position):
            position += length


def _copy_some(source: int, target: int, position: int) -> int:
    """Copy some bytes, or only references to them if the file system can share them."""
    try:
        return os.copy_file_range(source, target, _BYTES_PER_CALL, position, position)
    except (
        AttributeError,
        OSError,
    ):  # not every system and file system supports it; a write error occurs again below
        return os.pwrite(target, os.pread(source, _BYTES_PER_READ, position), position)


_DESCRIPTOR = re.compile(r"(/dev|/proc/[^/]+(/task/[^/]+)?)/fd/[0-9]{1,9}")
_MAX_LINKS = 40


def is_stream(path: str) -> bool:
    """Return whether a path names a FIFO, a device or a descriptor, which can't be replaced.

    This includes the file that standard output or standard error writes to.

    Raises OutputError for a system error.
    """
    if find_descriptor_path(path) or _find_standard_descriptor(path) is not None:
        return True
    with convert_write_errors(path):
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


class Stream(NamedTuple):
    """A descriptor to write lines to."""

    descriptor: int

    def write(self, line: bytes) -> None:
        """Write a line that ends with a newline. On a terminal, control characters are escaped.

        Raises OSError if the write fails.
        """
        if os.isatty(self.descriptor):
            line = wire.escape_for_terminal(line.removesuffix(b"\n")) + b"\n"
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self.descriptor, rest) :]
            except BlockingIOError:
                select.select([], [self.descriptor], [])


@contextmanager
def open_stream(path: str) -> Iterator[Stream]:
    """Open a stream for writing. Raises OutputError if it can't be opened."""
    with convert_write_errors(path):
        descriptor = _open_descriptor(path)
    try:
        yield Stream(descriptor)
    finally:
        _close(descriptor)


def _find_standard_descriptor(path: str) -> int | None:
    """Return the standard output or standard error descriptor that is open on the regular file.

    Returns None if neither is.
    """
    with suppress(OSError, ValueError):
        status = os.stat(path)
        for descriptor in (1, 2):
            if stat.S_ISREG(status.st_mode) and os.path.samestat(os.fstat(descriptor), status):
                return descriptor
    return None


def _open_descriptor(path: str) -> int:
    if (standard := _find_standard_descriptor(path)) is not None:
        return os.dup(standard)
    found = find_descriptor_path(path)
    directory, name = os.path.split(found or path)
    if found and directory in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
        # Opening a regular file again would start at its beginning and overwrite its content.
        return os.dup(int(name))
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)


def find_descriptor_path(path: str) -> str | None:
    """Return the descriptor path, such as /dev/fd/2, to which a path leads, or None.

    Follows symbolic links up to the descriptor, and not to the file that it refers to.

    Raises OutputError for a system error.
    """
    with convert_write_errors(path):
        for _ in range(_MAX_LINKS):
            directory, name = os.path.split(path)
            path = os.path.join(os.path.realpath(directory), name)
            if _DESCRIPTOR.fullmatch(path):
                return path
            if not os.path.islink(path):
                break
            path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None
