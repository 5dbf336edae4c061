"""Find the kind of a recording, and survive any content."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings.readings import build_entry, build_har, read_all
from srvstat.contract.errors import SourceError
from srvstat.files import json_stream
from srvstat.support.curl import read_curl
from srvstat.support.recordings import Exchange, Unreadable, read_har, read_ndjson
from srvstat.support.replay import Reader

HAR = build_har(build_entry()).decode()
LINE = '{"request":{"method":"GET","path":"/gateway/v1/servers/a"}}'
COMMAND = "curl http://h/gateway/v1/servers/a"


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.har", HAR, "entry 1"),
        ("A.HAR", HAR, "entry 1"),
        ("a", HAR, "entry 1"),
        ("a.json", f" \r\n{HAR}", "entry 1"),
        ("a.ndjson", LINE, "line 1"),
        ("a.JSONL", LINE, "line 1"),
        ("a", f"\n{LINE}", "line 2"),
        ("a.har.bak", LINE, "line 1"),
        ("a.sh", COMMAND, "line 1"),
        ("a.txt", f"{{\n{COMMAND}", "line 2"),
        ("a.curl", COMMAND, "line 1"),
        ("a", COMMAND, "line 1"),
        ("a", "\n" * 2_000 + COMMAND, "line 2001"),
    ],
)
def test_the_name_or_else_the_content_selects_the_kind(
    name: str, content: str, place: str, tmp_path: Path
) -> None:
    path = tmp_path / name

    (read,) = read_all(path, content)

    assert isinstance(read, Exchange)
    assert read.place == f"{path}, {place}"
    assert read.head.path == b"/gateway/v1/servers/a"


def test_an_empty_file_has_no_exchanges(tmp_path: Path) -> None:
    assert read_all(tmp_path / "a", b" \n") == []


def test_a_text_without_a_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no curl command"):
        read_all(tmp_path / "mail.txt", b"curl says hello\n")


def mutate(text: bytes) -> st.SearchStrategy[bytes]:
    """Generate texts with a part that is replaced."""
    places = st.integers(0, len(text))
    return st.tuples(places, places, st.binary(max_size=5)).map(
        lambda drawn: text[: drawn[0]] + drawn[2] + text[drawn[1] :]
    )


PARTS = [
    *"-d'\"\\\n\t^`${}()|&;<>#:\0é",
    "$'",
    "%A%",
    "curl ",
    "http://h/gateway/v1/compare ",
    "-H @x",
]
COMMANDS = st.lists(st.sampled_from(PARTS)).map(lambda parts: f"curl -{''.join(parts)}".encode())


@pytest.mark.parametrize("read", [read_har, read_ndjson, read_curl])
@given(
    text=st.one_of(st.binary(), mutate(HAR.encode()), mutate(LINE.encode()), COMMANDS),
    size=st.integers(1, 100),
)
def test_any_content_is_read_or_refused(read: Reader, text: bytes, size: int) -> None:
    chunks = (text[start : start + size] for start in range(0, len(text), size))

    with suppress(SourceError):
        for found in read("case", chunks):
            assert isinstance(found, Exchange | Unreadable)


@given(
    value=st.recursive(
        st.none() | st.integers(-9, 9) | st.text(max_size=20),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=20), inner),
    ),
    size=st.integers(1, 9),
    is_ascii=st.booleans(),
)
def test_only_long_strings_are_replaced(value: Any, size: int, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "MAX_TEXT_BYTES", 10)
        limited = b"".join(json_stream.limit_strings(chunks))

    replaced = re.compile(rb'"\\u0000too long\\u0000[^"]*"')
    expected = re.sub(
        rb'"((?:[^"\\]|\\.)*)"',
        lambda string: string[0] if len(string[1]) <= 10 else b"long",
        text,
    )
    assert replaced.sub(b"long", limited) == expected
