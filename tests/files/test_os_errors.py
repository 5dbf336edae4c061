"""Convert errors of the operating system to ours."""

import errno
import os

import pytest

from srvstat.contract.errors import OutputError, SourceError, SrvstatError
from srvstat.files.paths import convert_errors


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gone", SourceError("gone: no such file; create it")),
        ("/dev/null/x", OutputError("/dev/null/x: Not a directory")),
        ("a\0b", SourceError("a\0b: not a file name")),
    ],
)
def test_errors_have_the_path_the_reason_and_the_class_of_their_cause(
    path: str, expected: SrvstatError
) -> None:
    with (
        pytest.raises(type(expected)) as raised,
        convert_errors(path, OutputError, name_class=SourceError, remedy="create it"),
    ):
        os.stat(path)

    assert raised.value.reason == expected.reason
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(), "can't be read"),
        (OSError(errno.EIO, "x"), "x"),
        (OSError(errno.EMFILE, "x"), "x; allow more with `ulimit -n`"),
    ],
)
def test_an_error_has_a_reason_and_with_too_many_open_files_a_remedy(
    error: OSError, reason: str
) -> None:
    with pytest.raises(SourceError, match=f"^file: {reason}$"), convert_errors("file", SourceError):
        raise error
