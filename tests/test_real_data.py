"""The expected answers on real data, and their figures recomputed from the raw CSV."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import DAY, Cli
from explain.naive import explain_naively, find_contradictions
from srvstat.contract.time import DAYS, parse_instant

Rows = dict[str, list[tuple[int, int]]]
"""The instant and the players of each row, by the id of its server."""


@pytest.mark.slow
def test_real_answers_have_the_expected_bytes_and_follow_from_the_raw_rows(
    war_brokers: Path,
    war_brokers_snapshot: str,
    war_brokers_rows: Rows,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = json.loads((war_brokers / "expected.json").read_bytes())
    answers = [json.loads(case["stdout"])["data"] for case in expected["cases"]]
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", war_brokers_snapshot)

    assert cli("snapshot", "info").json["asOf"] == expected["asOf"]
    assert len(answers) == 7
    for case, answer in zip(expected["cases"], answers, strict=True):
        ran = cli(*case["argv"])
        assert (ran.exit_code, ran.stdout.decode(), ran.stderr) == (0, case["stdout"], "")
        ran = cli(*case["argv"], "--explain")
        assert (ran.exit_code, ran.stderr) == (0, "")
        assert ran.stdout.decode().endswith(f',"answer":{case["stdout"].rstrip()}}}\n')
        check_servers(ran.json, answer, war_brokers_rows, parse_instant(expected["asOf"]))


def list_ids(answer: Any) -> list[str]:
    """Return the ids of the servers in the data of an answer."""
    return [answer["id"]] if isinstance(answer, dict) else [one["serverId"] for one in answer]


def check_servers(explained: Any, answer: Any, rows: Rows, end: int) -> None:
    """Compare the explained figures with those of the raw rows and with the expected answer."""
    is_comparison = isinstance(answer, list)
    assert [found["serverId"] for found in explained["servers"]] == list_ids(answer)
    for found in explained["servers"]:
        start = end - DAYS[explained["range"]] * DAY if is_comparison else None
        assert found == found | explain_naively(rows[found["serverId"]], start, end)
    if is_comparison:
        for found, result in zip(explained["servers"], answer, strict=True):
            assert find_contradictions(found, result) == []
