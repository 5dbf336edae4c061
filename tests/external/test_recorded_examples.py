"""Record the examples of docs/examples/recordings in Chromium, and answer from them there.

`make external` installs Playwright. The tests are skipped without it or without Chromium.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from external.chromium import browse

pytestmark = pytest.mark.external

RECORDINGS = ROOT / "docs" / "examples" / "recordings"


def read_entries(path: Path) -> list[Any]:
    entries: list[Any] = json.loads(path.read_bytes())["log"]["entries"]
    return entries


def test_another_recording_has_the_same_requests_and_answers(tmp_path: Path) -> None:
    shutil.copy(RECORDINGS / "access.toml", tmp_path)

    names = browse("record_examples.py", ROOT / ".venv" / "bin" / "srvstat", tmp_path)

    assert sorted(names) == sorted(path.name for path in RECORDINGS.glob("*.har"))
    for name in names:
        assert read_entries(tmp_path / name) == read_entries(RECORDINGS / name), "make recordings"


def test_a_page_of_another_origin_gets_the_recorded_answers() -> None:
    paths = sorted(RECORDINGS.glob("*.har"))

    answers = browse("play_recordings.py", *paths)

    recorded = [entry["response"] for path in paths for entry in read_entries(path)]
    assert answers == [
        [each["status"], each["content"]["text"], "60" if each["status"] == 429 else None]
        for each in recorded
    ]
