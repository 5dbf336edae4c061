"""The message about rejected rows says what reads their values, and it does."""

import json
from pathlib import Path

import pytest

from conftest import Cli
from support.snapshots import read_observations

pytestmark = pytest.mark.usefixtures("here")

BUILD = ["snapshot", "build", "out.db", "--game=game_a", "--overwrite", "--quiet"]
COLUMNS = "--columns id=serverId,at=observedAt,players=players"
HEADER = "serverId,observedAt,players\n"
TIME = "2026-03-01T10:00Z"


def find_remedy(cli: Cli, *options: str) -> str:
    """Build from sources with one malformed row; return the last part of the warning."""
    ran = cli(*BUILD, *options)
    assert ran.exit_code == 0, ran.stderr
    (line,) = ran.stderr.splitlines()
    assert line.startswith("warning: 1 of 2 rows not kept: 1 rejected; first ")
    return line.rpartition("; ")[2]


@pytest.mark.parametrize("value", ["007", "0.0", "", "NA", "12.00"])
def test_counts_in_another_form_are_read_by_naming_the_columns(value: str, cli: Cli) -> None:
    Path("week.csv").write_text(f"{HEADER}a,{TIME},{value}\nb,{TIME},5\n")

    assert find_remedy(cli, "--observations=week.csv") == f"add {COLUMNS} to read such values"

    ran = cli(*BUILD, "--observations=week.csv", *COLUMNS.split())
    assert (ran.exit_code, "rejected" in ran.stderr) == (0, False)


@pytest.mark.parametrize("value", ["5", 1.0])
def test_counts_of_json_in_another_form_are_read_by_naming_the_keys(
    value: str | float, cli: Cli
) -> None:
    rows = [{"serverId": name, "observedAt": TIME, "players": 5} for name in "ab"]
    rows[0]["players"] = value
    Path("week.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    assert find_remedy(cli, "--observations=week.ndjson") == f"add {COLUMNS} to read such values"

    assert cli(*BUILD, "--observations=week.ndjson", *COLUMNS.split()).stderr == ""
    assert len(read_observations("out.db")) == 2


def test_separators_of_thousands_are_not_read_by_naming_the_columns(cli: Cli) -> None:
    Path("week.csv").write_text(f"{HEADER}a,{TIME},1.000\nb,{TIME},5\n")

    assert find_remedy(cli, "--observations=week.csv") == (
        "remove the separators of thousands, or use --query with replace(\"players\", '.', '')"
    )


def test_dates_are_read_with_a_zone(cli: Cli) -> None:
    Path("week.csv").write_text(f"{HEADER}a,2026-03-01,4\nb,{TIME},5\n")

    remedy = find_remedy(cli, "--observations=week.csv")
    assert remedy == "add --time-zone UTC if the times are in UTC"

    assert cli(*BUILD, "--observations=week.csv", "--time-zone=UTC").stderr == ""
    assert len(read_observations("out.db")) == 2


def test_an_identifier_that_has_no_slug_needs_a_servers_file(cli: Cli) -> None:
    Path("week.csv").write_text(f"{HEADER}Pokémon,{TIME},4\nb,{TIME},5\n")

    assert find_remedy(cli, "--observations=week.csv") == (
        "give it an id in a servers file, with this sourceId"
    )


def test_a_source_without_sql_is_not_queried_with_it(cli: Cli) -> None:
    series = {"metric": {"server": "hub"}, "values": [[1772359200, "5.5"], [1772362800, "6"]]}
    Path("p.json").write_text(json.dumps({"data": {"result": [series]}}))
    points = [
        {"attributes": {"timestamp": f"2026-03-01T1{hour}:00:00Z", "value": count}}
        for hour, count in enumerate((5.5, 6))
    ]
    Path("1.json").write_text(json.dumps({"data": points}))
    cases = (
        ("prometheus", "p.json", "use round(…) in the PromQL query"),
        ("battlemetrics", "1.json", "round the counts to whole numbers"),
    )

    for kind, name, remedy in cases:
        source = [f"--from={kind}", f"--observations={name}"]

        assert find_remedy(cli, *source) == remedy
        dry = cli(*BUILD, *source, "--dry-run").stdout.decode()
        assert dry.endswith(f"\n{remedy}\n")


@pytest.mark.parametrize(("kind", "column"), [("prometheus", "value"), ("battlemetrics", "value")])
def test_a_column_has_the_name_of_its_source(kind: str, column: str, cli: Cli) -> None:
    series = {"metric": {"server": "hub"}, "values": [[1772359200, "5.5"]]}
    point = {"attributes": {"timestamp": "2026-03-01T10:00:00Z", "value": 5.5}}
    data = {"result": [series]} if kind == "prometheus" else [point]
    Path("1.json").write_text(json.dumps({"data": data}))

    ran = cli(*BUILD, f"--from={kind}", "--observations=1.json")

    assert ran.exit_code == 6
    assert f'(first: 1.json, row 1, {column}: "5.5"); ' in ran.stderr
