"""Let the user pick servers on a terminal if a command line names none.

No library fits: questionary and InquirerPy take 0.6 seconds to import, four times as long as a
table; simple-term-menu needs a key to open its filter, and pick has no filter.
"""

import os
import re
import select
import shlex
import shutil
import termios
import tty
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from srvstat.analysis.selection import build_search_text
from srvstat.cli import output
from srvstat.cli.process import allow_cleanup
from srvstat.render.screen import UNLIMITED
from srvstat.snapshot.read.snapshot import Snapshot

_STDIN = 0
_CANCELED = 130
_MOST_SERVERS = 50_000
"""The maximum number of servers in the list; a longer list would open after more than a second."""
_LINES = 12
_MOST_ID_WIDTH = 40
_ERASE = "\r\x1b[J"
_SECONDS_OF_SEQUENCE = 0.05
_KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_MOVES = {"A": -1, "B": 1, "5~": -_LINES, "6~": _LINES}
"""The number of lines that the arrows, page up and page down move."""


class _Server(NamedTuple):
    id: str
    name: str
    players: int
    searched: str


def pick(snapshot: Snapshot, least: int, most: int) -> list[str]:
    """Return the ids of servers that the user picks, or none if the snapshot is too large.

    Raises SystemExit if the user cancels, and SnapshotError if data are damaged.
    """
    if not 0 < snapshot.file_row.server_count <= _MOST_SERVERS:
        return []
    with snapshot.convert_decode_errors("the servers"):
        rows = sorted(snapshot.iter_servers(), key=lambda row: (-row.players_current, row.id))
        servers = [
            _Server(row.id, row.hostname, row.players_current, build_search_text(row))
            for row in rows
        ]
    return _Picker(servers, least, most).run()


def show_command(arguments: Sequence[str]) -> None:
    """Print the equivalent command, so that it can be repeated."""
    screen = replace(output.create_screen(), width=UNLIMITED)
    _write(screen.render(screen.escape(shlex.join(["srvstat", *arguments]), "dim")))


def _write(text: str) -> None:
    os.write(output.STDERR, text.encode())


class _Picker:
    """A list of servers, ordered by players, below a line of text that filters it."""

    def __init__(self, servers: Sequence[_Server], least: int, most: int) -> None:
        self._servers, self._least, self._most = servers, least, most
        self._found, self._at, self._typed = servers, 0, ""
        self._marked: list[str] = []
        self._is_refused = False

    def run(self) -> list[str]:
        """Return the ids that the user picks. Raises SystemExit if the user cancels."""
        before = termios.tcgetattr(_STDIN)
        first = self._render()  # imports its modules before signals raise exceptions
        with allow_cleanup():
            try:
                # Keep the characters that were typed early.
                tty.setraw(_STDIN, termios.TCSADRAIN)
                _write(first)
                for key in _iter_keys():
                    if picked := self._press(key):
                        return picked
                    _write(self._render())
                raise SystemExit(_CANCELED)
            finally:
                _write(_ERASE)
                termios.tcsetattr(_STDIN, termios.TCSADRAIN, before)

    def _press(self, key: str) -> list[str]:
        """Handle a key press; return the selection when done.

        Raises SystemExit if the user cancels.
        """
        self._is_refused = False
        chosen = [one.id for one in self._found[self._at : self._at + 1]]
        if key in {"\x1b", "\x03", "\x04"}:  # Esc, Ctrl-C, Ctrl-D
            raise SystemExit(_CANCELED)
        if key in {"\r", "\n"}:
            picked = self._marked or chosen
            self._is_refused = len(picked) < self._least
            return [] if self._is_refused else picked
        if key in {" ", "\t"} and self._most > 1:
            marked = [one for one in self._marked if one not in chosen]
            self._marked = marked if len(marked) < len(self._marked) else marked + chosen
            self._is_refused = len(self._marked) > self._most
            self._marked = self._marked[: self._most]
        elif key.startswith("\x1b"):
            at = self._at + _MOVES.get(key[2:], 0)
            self._at = max(min(at, len(self._found) - 1), 0)
        elif key in {"\x7f", "\b"} or key.isprintable():
            self._typed = self._typed + key if key.isprintable() else self._typed[:-1]
            words = self._typed.casefold().split()
            self._found = [
                one for one in self._servers if all(word in one.searched for word in words)
            ]
            self._at = 0
        return []

    def _render(self) -> str:
        """Draw the list over the previous list, with the cursor after the text."""
        screen = output.create_screen()
        height = max(min(_LINES, shutil.get_terminal_size().lines - 3), 1)
        first = max(self._at - height + 1, 0)
        visible = self._found[first : first + height]
        prompt = "Servers: " if self._most > 1 else "Server: "
        typed = self._typed[-screen.width // 3 :]
        top = screen.escape(prompt, "bold").append_text(screen.escape(typed))
        ids = [screen.truncate(screen.escape(one.id), _MOST_ID_WIDTH) for one in visible]
        widest = max((one.cell_len for one in ids), default=0)
        lines = []
        for number, (one, shown) in enumerate(zip(visible, ids, strict=True), first):
            place = self._marked.index(one.id) + 1 if one.id in self._marked else ""
            mark = f"[{place:>{len(str(self._most))}}] " if self._most > 1 else ""
            is_chosen = number == self._at
            line = screen.escape(f"{'>' if is_chosen else ' '} {mark}", "bold" * is_chosen)
            line.append_text(shown).pad_right(widest - shown.cell_len + 2)
            players = f"{one.players:,}"
            room = screen.width - line.cell_len - len(players) - 3
            name = screen.truncate(screen.escape_name(one.name), max(room, 1))
            name.pad_right(room - name.cell_len + 2)
            lines.append(line.append_text(name).append(players))
        hint = screen.escape(self._describe_keys(), "bold" if self._is_refused else "dim")
        drawn = screen.render(top, *lines, screen.truncate(hint, screen.width - 1))
        text = drawn.replace("\n", "\r\n")
        return f"{_ERASE}{text}\x1b[{len(lines) + 2}A\x1b[{top.cell_len}C"

    def _describe_keys(self) -> str:
        least = f"{self._least} to" if self._least > 1 else "up to"
        marks = f"Space marks {least} {self._most}, " if self._most > 1 else ""
        count = f"{len(self._found):,} of {len(self._servers):,} servers"
        return f"{count}; {marks}Enter shows, Esc cancels"


def _iter_keys() -> Iterator[str]:
    """Yield keys, each a character or an escape sequence, until the end of input."""
    decoder = getincrementaldecoder("utf-8")("replace")
    while data := os.read(_STDIN, 1024):
        # The rest of a sequence can arrive later, while a single Esc has no rest.
        while data.endswith(b"\x1b") and select.select([_STDIN], [], [], _SECONDS_OF_SEQUENCE)[0]:
            data += os.read(_STDIN, 1024)
        yield from _KEY.findall(decoder.decode(data))
