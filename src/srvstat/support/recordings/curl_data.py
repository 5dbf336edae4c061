"""Build the data of a curl command, which may be in files."""

import os
import stat
from urllib.parse import quote_from_bytes

from srvstat.contract.errors import SourceError
from srvstat.files.errors import convert_errors
from srvstat.files.reading import format_title, open_input
from srvstat.support.recordings.curl_options import CurlError, Option
from srvstat.support.recordings.shell_words import VARIABLE

MAX_FILE_BYTES = 1 << 16

_LINE_ENDS = b"\r\n\0"
_WITHOUT_LINE_ENDS = ("data", "data-ascii")
_FROM_FILE = (*_WITHOUT_LINE_ENDS, "data-binary", "json")


def build_data(option: Option) -> bytes:
    """Return the data that an option of curl adds to the body or, with -G, to the query.

    Raises CurlError.
    """
    name, argument = option
    check_known(name, argument)
    if name in ("data-urlencode", "url-query"):
        return _encode_data(name, argument)
    if name not in _FROM_FILE or not argument.startswith(b"@"):
        return argument
    data = read_file(name, argument[1:])
    return data.translate(None, _LINE_ENDS) if name in _WITHOUT_LINE_ENDS else data


def check_known(name: str, argument: bytes) -> None:
    """Raise CurlError if the argument of an option has a shell variable."""
    if VARIABLE in argument:
        raise CurlError(f"--{name}: a shell variable or substitution; replace it by its value")


def read_file(name: str, path: bytes) -> bytes:
    """Read the file that an option names.

    Raises CurlError if it is not a regular file, or longer than MAX_FILE_BYTES.
    """
    if path == b"-":
        raise CurlError(f"--{name}: standard input was not recorded")
    title = format_title(os.fsdecode(path))
    try:
        with convert_errors(title, SourceError):
            is_regular = stat.S_ISREG(os.stat(path).st_mode)
        if not is_regular:
            raise CurlError(f"--{name}: {title}: not a regular file")
        with open_input(os.fsdecode(path)) as file:
            data = b""
            while len(data) <= MAX_FILE_BYTES and (chunk := file.read(MAX_FILE_BYTES)):
                data += chunk
    except SourceError as error:
        raise CurlError(f"--{name}: {error.reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise CurlError(f"--{name}: {title}: longer than {MAX_FILE_BYTES:,} bytes")
    return data


def _encode_data(name: str, argument: bytes) -> bytes:
    """Encode `content`, `=content`, `name=content`, `@file` or `name@file`."""
    if name == "url-query" and argument.startswith(b"+"):
        return argument[1:]
    label, separator, content = argument.partition(b"=")
    if not separator:
        label, separator, content = argument.partition(b"@")
    if not separator:
        label, content = b"", argument
    elif separator == b"@":
        content = read_file(name, content)
    encoded = quote_from_bytes(content, safe="").replace("%20", "+").encode()
    return label + b"=" + encoded if label else encoded
