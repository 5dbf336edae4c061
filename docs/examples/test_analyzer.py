"""Test questions about the demo's fleet."""

import subprocess
from pathlib import Path

import srvstat
from analyzer import list_weeks, rank_by_peak, write_total


def test_questions_about_the_demo_have_known_answers(tmp_path: Path) -> None:
    subprocess.run(["srvstat", "demo", "."], cwd=tmp_path, capture_output=True, check=True)

    with srvstat.open_snapshot(tmp_path / "snapshot.db") as snapshot:
        ranked = rank_by_peak(snapshot)
        weeks = list_weeks(snapshot, "harbor-city", end="2026-03-01")
        write_total(snapshot, tmp_path / "total.csv")

    assert ranked == [("harbor-city", 361), ("new-frontier", 211), ("night-shift", 87)]
    assert weeks == [128.07142857142858, 127.97619047619048]
    lines = (tmp_path / "total.csv").read_text(encoding="utf-8").splitlines()
    assert [lines[0], lines[2]] == [
        "from,to,sampleCount,serverCount,players,observedShare,isPartial",
        "1771765200000,1771768800000,7,7,339.85714285714283,1.0,False",
    ]
    assert len(lines) == 1 + 7 * 24
