"""Read words that were quoted in any of the ways that the reader of curl commands knows."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.support.recordings.cmd_words import split_cmd_line
from srvstat.support.recordings.shell_words import split_line

# Neither a program's arguments nor a line of a message can have NUL or a lone surrogate.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(st.one_of(st.sampled_from("'\"\\$`!^%&|<>();{},#~*? \t\n"), CHARACTERS))
WORDS = st.lists(TEXTS, min_size=1)


def quote_ansi(word: str) -> str:
    """Quote a word with $'…', as browsers do, and other characters by their bytes."""
    escapes = (
        character if re.match("[a-z ]", character) else
        f"\\u{ord(character):04x}" if character < "\u0100" else
        "".join(f"\\x{byte:02x}" for byte in character.encode())
        for character in word
    )  # fmt: skip
    return f"$'{''.join(escapes)}'"


def quote_double(word: str) -> str:
    escaped = re.sub(r'[\\"$`]', r"\\\g<0>", word)
    return f'"{escaped}"'


def quote_backslash(word: str) -> str:
    escaped = re.sub(r"[^A-Za-z0-9\n]", r"\\\g<0>", word).replace("\n", "'\n'")
    return escaped or "''"


def quote_cmd(word: str) -> str:
    """Quote a word as Chrome does in "Copy as cURL (cmd)"."""
    quoted = re.sub(r'(\\*)"', r'\1\1\\"', word)
    quoted = re.sub(r"(\\+)\Z", r"\1\1", quoted)
    return re.sub(r"[^a-zA-Z0-9\s]", r"^\g<0>", f'"{quoted}"').replace("\n", "^\n\n")


@pytest.mark.parametrize("quote", [shlex.quote, quote_ansi, quote_double, quote_backslash])
@given(words=WORDS)
def test_words_quoted_for_a_shell_are_read(quote: Callable[[str], str], words: list[str]) -> None:
    line = " \\\n ".join(map(quote, words)) + " # end"

    (command,), end = split_line(f"{line}\nnext", 0)

    assert command.words == [word.encode() for word in words]
    assert end == len(line)


@given(words=WORDS)
def test_words_quoted_for_windows_are_read(words: list[str]) -> None:
    line = " ^\n ".join(map(quote_cmd, words))

    (command,), end = split_cmd_line(f"{line}\nnext", 0)

    assert command.words == [word.encode() for word in words]
    assert end == len(line)


LINES = [
    r"""a'b'"c"\d$'e'$"f" '' "" g#h""",
    r"""a "\a\$\"\`\\\
b" '\' $'\a\b\e\E\f\n\r\t\v\\\'\"\?\q\1\12\1234\x4g\xe9\xc3\xa9\u41 \U1F600\cA'""",
    "a 2>/dev/null b>c d >&2 e 2>&1 f< /dev/null g",
    'a $ b$ \'c\'"$" "$."',
    "a\\\nb \\\n c",
    r"a \# b # c",
    "a {b}c x=y ~x [a]",
]


@pytest.mark.parametrize("line", LINES)
def test_words_are_split_as_bash_does(line: str, tmp_path: Path) -> None:
    (command,), _ = split_line(line, 0)

    script = f'show() {{ printf "%s\\0" "$@" >&9; }}; exec 9>&1; show {line}'
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        cwd=tmp_path,
        env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        timeout=10,
        check=True,
    )
    assert command.words == done.stdout.split(b"\0")[:-1]


def test_a_line_has_several_commands() -> None:
    commands, _ = split_line("a 1 && b | c;d & e || f |& g; h < i > j; k\nl", 0)

    assert [(found.words[0], found.has_input) for found in commands] == [
        (b"a", False),
        (b"b", False),
        (b"c", True),
        (b"d", False),
        (b"e", False),
        (b"f", False),
        (b"g", True),
        (b"h", True),
        (b"k", False),
    ]


def test_a_line_for_windows_has_several_commands() -> None:
    commands, _ = split_cmd_line('a "1 & 2" && b | c & d || e ^& f & g < h & i\nj', 0)

    assert [(found.words, found.has_input) for found in commands] == [
        ([b"a", b"1 & 2"], False),
        ([b"b"], False),
        ([b"c"], True),
        ([b"d"], False),
        ([b"e", b"&", b"f"], False),
        ([b"g"], True),
        ([b"i"], False),
    ]
