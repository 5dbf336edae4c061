"""Errors come in the order in which a person can act: the files, their header, the game, values."""

from pathlib import Path

import pytest

from conftest import AS_OF, Cli

ROWS = f"serverId,observedAt,players\na,{AS_OF},5\n"


def write_files() -> None:
    Path("good.csv").write_text(ROWS)
    Path("other.csv").write_text(f"AppID,Date,Players\na,{AS_OF},5\n")
    Path("bad.csv").write_text("serverId,observedAt,players\na,soon,5\n")
    Path("servers.ndjson").write_text('{"id":"a"}\n')
    Path("snapshot.db").write_text("no snapshot")


BUILD = ("snapshot", "build", "out.db")
DRAFT = ("snapshot", "draft-servers")
FLEET = ("fleet", "-o", "out.ndjson")
MISSING = "missing.csv: No such file or directory"
HEADER = "other.csv, line 1: must be the header serverId,observedAt,players, not the columns"
GAME = "--game: missing"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("files", "options", "reason", "exit_code"),
    [
        (("missing.csv",), (), MISSING, 6),
        (("good.csv", "missing.csv"), (), MISSING, 6),
        (("bad.csv", "missing.csv"), ("--strict",), MISSING, 6),
        (("missing.csv",), ("--servers", "servers.ndjson"), MISSING, 6),
        (("good.csv",), ("--servers", "missing.csv"), MISSING, 6),
        (("other.csv",), (), HEADER, 6),
        (("good.csv",), (), GAME, 2),
        (("good.csv",), ("--servers", "servers.ndjson"), GAME, 2),
        (("bad.csv",), (), "no observation was kept: 1 rejected", 6),
    ],
)
def test_a_build_names_the_first_thing_to_mend(
    files: tuple[str, ...], options: tuple[str, ...], reason: str, exit_code: int, cli: Cli
) -> None:
    write_files()
    sources = [f"--observations={name}" for name in files]

    ran = cli(*BUILD, *sources, *options)

    assert (ran.exit_code, ran.stderr[: len(reason) + 7]) == (exit_code, f"error: {reason}")
    assert not Path("out.db").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "reason", "exit_code"),
    [("missing.csv", MISSING, 6), ("other.csv", HEADER, 6), ("good.csv", GAME, 2)],
)
def test_a_fleet_job_and_a_draft_have_the_same_order(
    name: str, reason: str, exit_code: int, cli: Cli
) -> None:
    write_files()

    for command in ((*FLEET, name), (*DRAFT, f"--observations={name}")):
        ran = cli(*command)

        assert (ran.exit_code, ran.stderr[: len(reason) + 7]) == (exit_code, f"error: {reason}")


@pytest.mark.usefixtures("here")
def test_a_file_that_may_not_be_read_comes_before_the_game(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files()
    monkeypatch.setattr("os.access", lambda *_: False)  # tests may run as root

    ran = cli(*BUILD, "--observations=good.csv")

    assert (ran.exit_code, ran.stderr) == (6, "error: good.csv: Permission denied\n")
