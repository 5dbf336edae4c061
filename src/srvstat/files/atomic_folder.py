"""Write a new folder completely or not at all."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from srvstat.contract.errors import UsageError
from srvstat.files.atomic_write import check_name
from srvstat.files.drafts import close_descriptor, create_draft_folder, sweep_draft_folders
from srvstat.files.errors import convert_write_errors

_EXISTS = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


@contextmanager
def atomic_folder(path: str, option: str = "-o") -> Iterator[str]:
    """Yield the path of a new folder to fill, and rename it to `path` if the block succeeds.

    `option` is that of the path, for messages. The block flushes each file, as `write_file` does.
    Folders that killed commands of the same target left behind are removed first.

    Raises UsageError if the target exists, OutputError if it can't be written.
    """
    target = check_new_folder(option, path)
    with ExitStack() as stack:
        with convert_write_errors(path):
            sweep_draft_folders(target)
            draft = stack.enter_context(create_draft_folder(target))
        yield draft.path
        with convert_write_errors(path):
            for folder, _, _ in os.walk(draft.path):
                _flush_folder(folder)
            _rename(path, draft.path, target)
            _flush_folder(os.path.dirname(target))


def check_new_folder(option: str, path: str) -> str:
    """Check the name of a folder to write, and return its real path.

    Raises UsageError if it exists or can't be a name, OutputError.
    """
    target = check_name(option, path.rstrip(os.sep) or path)
    if os.path.lexists(target):
        raise _build_exists_error(path)
    return target


def write_file(path: str, pieces: Iterable[bytes], *, title: str) -> None:
    """Write a new file and flush it to the disk; create its folder.

    Raises OutputError with the title.
    """
    with ExitStack() as stack:
        with convert_write_errors(title):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file = stack.enter_context(open(path, "xb"))
        for piece in pieces:
            with convert_write_errors(title):
                file.write(piece)
        with convert_write_errors(title):
            file.flush()
            os.fsync(file.fileno())


def _rename(path: str, draft: str, target: str) -> None:
    try:
        os.rename(draft, target)
    except OSError as error:
        if error.errno in _EXISTS:
            raise _build_exists_error(path) from None
        raise


def _flush_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        close_descriptor(descriptor)


def _build_exists_error(path: str) -> UsageError:
    return UsageError(f"{path}: exists; name a new folder")
