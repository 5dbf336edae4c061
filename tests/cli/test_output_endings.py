"""Names of outputs without the ending of a format."""

from pathlib import Path

import pytest

from conftest import AS_OF, Cli


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["players", "players.page", "x.HTML", "x.2026"])
def test_any_other_ending_is_accepted(name: str, cli: Cli) -> None:
    rows = "".join(f"a,{AS_OF - hour * 3_600_000},5\n" for hour in range(100))
    Path("week.csv").write_text(f"serverId,observedAt,players\n{rows}")
    build = ("snapshot", "build", "snapshot", "--game", "game_a", "--observations", "week.csv")
    assert cli(*build).exit_code == 0

    assert cli("report", "a", "-o", name, "--snapshot", "snapshot").exit_code == 0
    assert Path(name).read_bytes().startswith(b"<!DOCTYPE html>")
