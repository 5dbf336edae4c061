"""Put a file in its place once it is complete, or leave everything as it was."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from srvstat.contract.errors import OutputError, UsageError
from srvstat.snapshot.drafts import close, drafted, sweep

_NO_HARD_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def published(path: str, *, overwrite: bool) -> Iterator[str]:
    """Hand out a new file to fill, and give it its name when the block ends without an error.

    The new file lies beside its target. It is flushed to the disk, renamed, and the rename flushed
    too, so the target is the old file or the new one, whole, whatever happens. Without `overwrite`
    a file that stands there, even since a moment ago, is never replaced. A symbolic link stays and
    its target is replaced. What killed builds of the same target left is removed first.

    Raises UsageError where the target may not be replaced, OutputError where it can't be written.
    """
    with writing(path):
        target = os.path.realpath(path)
    _check_target(path, target, overwrite=overwrite)
    with ExitStack() as stack:
        with writing(path):
            # Opened before the work begins: one that can't be read can't be flushed either.
            directory = _opened(os.path.dirname(target), stack)
            sweep(target)
            draft = stack.enter_context(drafted(target))
        yield draft.path
        with writing(path):
            # The draft's first descriptor hears of whatever could not be written since.
            os.fsync(draft.descriptor)
            if overwrite:
                os.replace(draft.path, target)
            else:
                _link(path, draft.path, target)
            os.fsync(directory)


def _check_target(path: str, target: str, *, overwrite: bool) -> None:
    with writing(path):
        try:
            mode = os.stat(target).st_mode
        except FileNotFoundError:
            return
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path}: not a regular file, so it can't be replaced")
    if not overwrite:
        raise _exists(path)


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
def writing(path: str) -> Iterator[None]:
    """Name the output file in what the system says against writing it."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or 'cannot be written'}") from None
    except ValueError:  # a NUL in the path
        raise UsageError(f"{path}: not a file name") from None
