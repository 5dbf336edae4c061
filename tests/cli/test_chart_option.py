"""`--chart` of `compare` and `history`, and what all charts have in common."""

import pytest

from conftest import Cli

PAIR = ["harbor-city", "night-shift"]


@pytest.fixture(autouse=True)
def _default_snapshot(demo_snapshot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)


def split_chart(cli: Cli, *arguments: str) -> tuple[str, str]:
    """Return the chart of a command, and what follows after an empty line."""
    ran = cli(*arguments, "--chart")
    assert ran.exit_code == 0, ran.stderr
    chart, rest = ran.stdout.decode().split("\n\n", 1)
    return chart, rest


def test_a_comparison_has_its_chart_above_the_usual_table(cli: Cli) -> None:
    asked = ["compare", *PAIR, "--range=7d", "--at=2026-02-20T12:00Z"]
    chart, table = split_chart(cli, *asked)

    assert table == cli(*asked, "--table").stdout.decode()
    drawn, _ = split_chart(cli, "history", *PAIR, "--range=7d", "--to=2026-02-20T12:00Z")
    assert chart == drawn
