"""Check that the messages quoted in docs/errors.md are those that srvstat prints."""

import re
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, ROOT, Build, Cli, server
from srvstat.cli.demo import build_access_file

PAIR = ["srv-1", "srv-2"]
PLAN = ["--plan", "starter", "--access", "access.toml"]
BAD_RANGE = '# 1\n# 2\n# 3\n# 4\n[plans.starter]\noperations = []\nranges = ["8d"]\n'


def read_message_patterns() -> list[re.Pattern[str]]:
    """Return the messages of the table as patterns; capitals, digits and … match any text."""
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    messages = re.findall(
        r"^\| `(.+?)` \|", text.partition("| message | remedy |")[2], re.MULTILINE
    )
    return [
        re.compile(re.sub(r"PATH|OUTPUT|\bX\b|\d+|…", r".+", re.escape(message)), re.DOTALL)
        for message in messages
    ]


@pytest.fixture
def _files(build: Build, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a directory with a snapshot, a bundle, a damaged snapshot and invalid files."""
    names = [*PAIR, "x-srv-9"]
    Path(build(map(server, names), [("srv-1", AS_OF, 5)])).rename(tmp_path / "good.db")
    Path(build(map(server, names), [("srv-1", AS_OF, 5)])).rename(tmp_path / "bad.db")
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("bad.db")) as connection, connection:
        connection.execute("UPDATE blocks SET players = x'06'")
    cli("snapshot", "bundle", *PAIR, "--range", "7d", "-o", "case.db", "-s", "good.db")
    Path("cut.har").write_bytes(b'{"log":{"entries":[')
    Path("other.har").write_bytes(b"{}")
    Path("own.csv").write_text("date;lobby\n2026-03-01;5\n")
    Path("access.toml").write_bytes(build_access_file())
    Path("range").mkdir()
    Path("range/access.toml").write_text(BAD_RANGE)
    Path("keys").mkdir()
    Path("keys/access.toml").write_bytes(b"keys = []\n" + build_access_file())


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(
    "command",
    [
        ["compare", "srv-1", "-s", "good.db"],
        ["compare", "srv-1", "srv-1", "-s", "good.db"],
        ["get", "srv_1", "-s", "good.db"],
        ["get", "x-srv-1", "-s", "good.db"],
        ["compare", *PAIR, "--range", "1y", "-s", "good.db", *PLAN],
        ["history", "srv-1", "--range=all", "-sgood.db", "--plan=studio", "--access=access.toml"],
        ["access", "check", "--access", "range/access.toml"],
        ["access", "new-key", "--plan", "starter", "--access", "keys/access.toml"],
        ["serve", "-s", "good.db", "--host", "0.0.0.0"],  # noqa: S104 - rejected
        ["serve", "-s", "good.db", "--port", "TAKEN"],
        ["serve", "-s", "good.db", "--cors", "http://localhost:5173/"],
        ["get", "srv-1"],
        ["compare", *PAIR, "-s", "bad.db"],
        ["compare", *PAIR, "--range", "1y", "-s", "case.db"],
        ["get", "x-srv-9", "-s", "case.db"],
        ["replay", "cut.har", "-s", "good.db"],
        ["replay", "other.har", "-s", "good.db"],
        ["serve", "-s", "good.db", "--record", "access.toml"],
        ["snapshot", "verify", "good.db", "--expect", "0" * 64],
        ["snapshot", "build", "good.db", "--servers", "s.ndjson", "--observations", "o.csv"],
        ["snapshot", "build", "new.db", "--observations", "other.har"],
        ["snapshot", "build", "new.db", "--observations", "own.csv"],
        ["snapshot", "build", "new.db", "--observations", "own.csv", "--game", "game_a"],
        ["snapshot", "build", "new.db", "--observations=own.csv", "--game=game_a", "--wide=at=x"],
    ],
    ids=" ".join,
)
def test_a_printed_message_is_quoted_in_the_documentation(cli: Cli, command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = cli(*(port if word == "TAKEN" else word for word in command))

    reason = ran.stderr.removeprefix("error: ").removesuffix("\n")
    assert ran.exit_code
    assert any(message.search(reason) for message in read_message_patterns()), reason
