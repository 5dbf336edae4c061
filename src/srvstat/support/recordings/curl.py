"""Read curl commands from a script, or from a message that they were pasted into."""

import re
from collections.abc import Iterator

from srvstat.contract.errors import SourceError
from srvstat.support.recordings.cmd_words import is_cmd, split_cmd_line
from srvstat.support.recordings.curl_options import CurlError
from srvstat.support.recordings.curl_request import NOT_READ, build_requests
from srvstat.support.recordings.exchange import Exchange, Unreadable
from srvstat.support.recordings.shell_words import Command, WordError, split_line

MAX_BYTES = 16 << 20

# `curl` in prose is not a command: its first argument is an option, is quoted, or looks like a URL.
# It may follow a prompt, such as `$ `, `me@host:~# ` or `C:\\>`, and a command with a pipe to it.
_START = re.compile(
    r"""^[ \t]*(?:(?:[^\s'"]*\$|\[?[\w.-]+@[^\n'"$#]*[$#])[ \t]+|[A-Za-z]:\\[^\n">]*>[ \t]*)?"""
    r"""(\w[^\n]*?(?<!\|)\|&?[ \t]*)??(curl(?:\.exe)?[ \t]+(?:[-'"$\\^`(]|[^\s:/.]*[:/.]\S))""",
    re.MULTILINE,
)
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_CURL = (b"curl", b"curl.exe")


def read_curl(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the requests of curl commands in their order; other lines are skipped.

    They are for a POSIX shell or, if `is_cmd` says so, for Windows' cmd.exe.

    Raises SourceError for more than MAX_BYTES, and for text without a command.
    """
    text = _read_text(title, chunks)
    if text.strip() and not _START.search(text):
        raise SourceError(
            f"{title}: no curl command; the name of a HAR file must end in .har, and that of a"
            " recording of the service in .ndjson"
        )
    at, line, counted = 0, 1, 0
    while start := _START.search(text, at):
        piped, found = start[1], start.start(2)
        split = split_cmd_line if is_cmd(text, found) else split_line
        commands: list[Command] = []
        reason = None
        try:
            commands, at = split(text, found)
        except WordError as error:
            reason, at = str(error), error.end
        if _NOT_UTF8.search(text, found, at):
            commands, reason = [], "not UTF-8"
        if piped and commands:
            commands[0] = commands[0]._replace(has_input=True)
        line, counted = line + text.count("\n", counted, found), found
        if reason:
            yield Unreadable(f"{title}, line {line}", reason)
        for command in commands:
            if command.words[0] in _CURL:
                after = text.count("\n", counted, command.start)
                yield from _read_command(f"{title}, line {line + after}", command)


def _read_text(title: str, chunks: Iterator[bytes]) -> str:
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > MAX_BYTES:
            raise SourceError(f"{title}: more than {MAX_BYTES:,} bytes of curl commands; split it")
    return data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def _read_command(place: str, command: Command) -> Iterator[Exchange | Unreadable]:
    try:
        requests = list(build_requests(command.words[1:]))
    except CurlError as error:
        yield Unreadable(place, str(error))
        return
    if command.has_input:
        yield Unreadable(place, f"a pipe or <: {NOT_READ}")
        return
    for head, body, host in requests:
        yield Exchange(place, head, body, host)
