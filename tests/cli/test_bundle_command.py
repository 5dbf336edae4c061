"""`snapshot bundle`, and how every interface refuses what a bundle doesn't cover."""

import json
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Cli, build_in, server
from srvstat import open_snapshot
from srvstat.contract.errors import SnapshotError

CASE = ["snapshot", "bundle", "a", "-o", "case.db"]
NOT_COVERED = (
    "error: case.db: a bundle that covers 2026-02-22T00:00:00.000Z and later, but the window begins"
    " at 2026-01-30T12:00:00.000Z; use a shorter range, or the snapshot that the bundle comes"
    " from\n"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory with a snapshot of the servers a, ab and old, the default one."""
    rows = [
        *(("a", AS_OF - day * DAY, day) for day in range(50)),
        ("ab", AS_OF, 3),
        ("old", AS_OF - 20 * DAY, 4),
    ]
    build_in(tmp_path, [server("a"), server("ab"), server("old")], rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)
    return tmp_path


@pytest.fixture
def case(here: Path, cli: Cli) -> str:
    """Write a bundle of the servers a and old that covers 7d."""
    assert cli(*CASE, "old", "--range", "7d").exit_code == 0
    assert (here / "case.db").is_file()
    return "case.db"


@pytest.mark.usefixtures("here")
def test_the_summary_names_the_commands_that_check_and_use_the_bundle(cli: Cli) -> None:
    whole = cli("snapshot", "info").json

    ran = cli(*CASE, "cfxId:x-a", "cfxId:x-ab", "--range", "30d", "-o", "my case.db")

    assert (ran.exit_code, ran.stdout) == (0, b"")
    lines = ran.stderr.splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines[1:3])
    assert (lines[0], shown) == ("wrote my case.db", {"servers": "2", "observations": "32"})
    verify, use = (line.partition("srvstat ")[2] for line in lines[-2:])
    assert verify == "snapshot verify 'my case.db'"
    assert use == "compare a ab --range 30d --snapshot 'my case.db'"
    arguments = use.replace("'", "").replace("my case.db", "my-case.db").split()
    Path("my case.db").rename("my-case.db")
    assert cli(*arguments, "--json").stdout == cli(*arguments[:-2], "--json").stdout
    info = cli("snapshot", "info", "my-case.db").json
    assert (info["parentRoot"], whole["parentRoot"]) == (whole["root"], None)
    assert (info["coveredFrom"], whole["coveredFrom"]) == ("2026-01-30T00:00:00.000Z", None)
    assert f"root          {info['root']}" in ran.stderr
    assert cli("snapshot", "verify", "my-case.db").json["root"] == info["root"]
    table = cli("snapshot", "info", "my-case.db", "--table").stdout.decode()
    assert f"parent root   {whole['root']}\ncovered from  2026-01-30 00:00:00 UTC\n" in table
    assert "covered from" not in cli("snapshot", "info", "--table").stdout.decode()


@pytest.mark.usefixtures("here")
def test_one_server_is_shown_with_get_and_a_leading_hyphen_with_its_namespace(
    tmp_path: Path, cli: Cli
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    path = str(build_in(other, [server("-a")], [("-a", AS_OF, 1)]))

    ran = cli("snapshot", "bundle", "id:-a", "-o", "case.db", "-s", path)

    use = ran.stderr.splitlines()[-1].partition("srvstat ")[2]
    assert use == "get id:-a --snapshot case.db"
    assert cli(*use.split()).exit_code == 0


def test_an_invalid_request_and_the_plan_come_before_the_bundle(
    case: str, here: Path, cli: Cli
) -> None:
    plan = '[plans.short]\noperations = ["compare-servers"]\nranges = ["24h"]\n'
    (here / "access.toml").write_text(plan)
    access = ("--plan", "short", "--access", "access.toml")

    assert cli("compare", "a", "nobody", "--range", "8d", "-s", case).exit_code == 40
    assert cli("compare", "a", "nobody", "-s", case, *access).exit_code == 43
    assert cli("compare", "a", "nobody", "--range", "24h", "-s", case, *access).exit_code == 3


def test_a_batch_stops_at_a_line_that_the_bundle_lacks(case: str, here: Path, cli: Cli) -> None:
    servers = [{"identifier": name, "by": "id"} for name in ("a", "old")]
    bodies = [{"servers": servers, "range": each} for each in ("7d", "30d", "7d")]
    (here / "batch").write_bytes(b"".join(json.dumps(body).encode() + b"\n" for body in bodies))

    ran = cli("compare", "--batch", "batch", "-s", case)

    assert (ran.exit_code, ran.stderr) == (3, NOT_COVERED)
    assert ran.stdout == cli("compare", "a", "old", "--range", "7d").stdout


def test_the_python_api_refuses_what_a_bundle_lacks(case: str) -> None:
    with open_snapshot(case) as snapshot:
        assert snapshot.compare(["a", "old"], range="7d").range == "7d"
        with pytest.raises(SnapshotError, match="a bundle that covers"):
            snapshot.compare(["a", "old"])
        with pytest.raises(SnapshotError, match="a bundle without id ab"):
            snapshot.get("ab")
