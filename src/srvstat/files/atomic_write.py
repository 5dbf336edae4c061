"""Put a file in its place once it is complete, or leave everything as it was."""

import errno
import os
import re
import select
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from srvstat.contract import wire
from srvstat.contract.errors import OutputError, UsageError
from srvstat.files.drafts import close, create_draft, sweep_drafts

_DESCRIPTOR = re.compile(r"(/dev|/proc/[^/]+(/task/[^/]+)?)/fd/[0-9]{1,9}")
_MAX_LINKS = 40
_STREAM_BYTES = 1 << 16
_NO_HARD_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def atomic_write(path: str, *, overwrite: bool) -> Iterator[str]:
    """Hand out a new file to fill, and give it its name when the block ends without an error.

    The new file lies beside its target. It is flushed to the disk, renamed, and the rename flushed
    too, so the target is the old file or the new one, whole, whatever happens. Without `overwrite`
    a file that stands there, even since a moment ago, is never replaced. A symbolic link stays and
    its target is replaced. What killed builds of the same target left is removed first. A new file
    keeps the mode, and where possible the group, of the file it replaces.

    Raises UsageError where the target may not be replaced, OutputError where it can't be written.
    """
    if _descriptor_path(path):
        raise UsageError(f"{path}: names an open file, not a place for a new one; name a file")
    with convert_write_errors(path):
        target = os.path.realpath(path)
    replaced = _check_target(path, target, overwrite=overwrite)
    with ExitStack() as stack:
        with convert_write_errors(path):
            # Opened before the work begins: one that can't be read can't be flushed either.
            directory = _opened(os.path.dirname(target), stack)
            sweep_drafts(target)
            # Nobody else may open the draft of a file that may be a private one.
            mode = 0o666 if replaced is None else stat.S_IRUSR | stat.S_IWUSR
            draft = stack.enter_context(create_draft(target, mode))
        yield draft.path
        with convert_write_errors(path):
            if replaced is not None:
                _keep_rights(draft.descriptor, replaced)
            # The draft's first descriptor hears of whatever could not be written since.
            os.fsync(draft.descriptor)
            if overwrite:
                os.replace(draft.path, target)
            else:
                _link(path, draft.path, target)
            os.fsync(directory)


def is_stream(path: str) -> bool:
    """Say whether a path names what can only be written to: a FIFO, a device, a descriptor.

    So does the name of a file that standard output or standard error is open on.

    Raises OutputError.
    """
    if _descriptor_path(path) or _standard_descriptor(path) is not None:
        return True
    with convert_write_errors(path):
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


@contextmanager
def open_stream(path: str) -> Iterator[Callable[[bytes | None], None]]:
    """Open a stream and hand out what writes a line to it; None writes what is still buffered.

    Raises OutputError.
    """
    with convert_write_errors(path):
        descriptor = _open_stream_descriptor(path)
    buffered = bytearray()
    is_terminal = os.isatty(descriptor)

    def write(line: bytes | None) -> None:
        if line is not None:
            body = line.removesuffix(b"\n")
            buffered.extend(wire.escape_for_terminal(body) if is_terminal else body)
            buffered.extend(b"\n")
        if line is None or len(buffered) >= _STREAM_BYTES:
            with convert_write_errors(path):
                _write_all(descriptor, buffered)
            buffered.clear()

    try:
        yield write
    finally:
        close(descriptor)


def _standard_descriptor(path: str) -> int | None:
    """Return the standard descriptor that is open on the regular file at a path, if one is."""
    with suppress(OSError, ValueError):
        status = os.stat(path)
        for descriptor in (1, 2):
            if stat.S_ISREG(status.st_mode) and os.path.samestat(os.fstat(descriptor), status):
                return descriptor
    return None


def _open_stream_descriptor(path: str) -> int:
    if (standard := _standard_descriptor(path)) is not None:
        return os.dup(standard)
    found = _descriptor_path(path)
    directory, name = os.path.split(found or path)
    if found and directory in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
        # A second opening of a regular file would have a position of its own, and overwrite.
        return os.dup(int(name))
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)


def _write_all(descriptor: int, data: bytes | bytearray) -> None:
    with memoryview(data) as view:
        start = 0
        while start < len(view):
            try:
                start += os.write(descriptor, view[start:])
            except BlockingIOError:
                select.select([], [descriptor], [])


def _descriptor_path(path: str) -> str | None:
    """Return the path in a directory of descriptors that a path leads to, such as /dev/fd/2.

    None where it leads elsewhere. What the descriptor is open on is not followed.

    Raises OutputError.
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


def _check_target(path: str, target: str, *, overwrite: bool) -> os.stat_result | None:
    """Return the status of the file to replace; None where there is no file."""
    with convert_write_errors(path):
        try:
            status = os.stat(target)
        except FileNotFoundError:
            return None
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: not a regular file, so it can't be replaced")
    if not overwrite:
        raise _exists(path)
    return status


def _keep_rights(descriptor: int, replaced: os.stat_result) -> None:
    """Give a file the mode of the one it replaces and, where permitted, its group."""
    mode = replaced.st_mode & 0o777
    if os.fstat(descriptor).st_gid != replaced.st_gid:
        try:
            os.fchown(descriptor, -1, replaced.st_gid)
        except OSError:  # pragma: no cover - root, as whom tests may run, may set any group
            # Another group gets no more rights than everybody has.
            mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    os.fchmod(descriptor, mode)


def _opened(directory: str, stack: ExitStack) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(close, descriptor)
    return descriptor


def _link(path: str, draft: str, target: str) -> None:
    """Give a draft its name as no rename does: only where nothing has that name."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        raise OutputError(
            f"{path}: this file system has no hard links, by which a new file never replaces"
            " another; --overwrite needs none"
        ) from None


def _exists(path: str) -> UsageError:
    return UsageError(f"{path}: exists; --overwrite replaces it")


@contextmanager
def convert_write_errors(path: str) -> Iterator[None]:
    """Name the output file in what the system says against writing it."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or 'cannot be written'}") from None
    except ValueError:  # a NUL in the path
        raise UsageError(f"{path}: not a file name") from None
