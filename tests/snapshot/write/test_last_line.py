"""Warn of a last line without a newline: `14` may have been `147`."""

import gzip
from pathlib import Path

import pytest

from conftest import AS_OF, Cli, csv
from support.snapshots import WEEK, read_observations

pytestmark = pytest.mark.usefixtures("here")

UNENDED = "the last line has no newline, so it may be cut off; add one if the line is complete"
DRAFT = ["snapshot", "draft-servers", "--game", "game_a", "--observations", "week.csv"]
ROWS = csv([("a", AS_OF - 5, 5), ("b", AS_OF, 147)])


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(("cut", "kept"), [(1, 147), (2, 14)])
def test_a_last_row_without_a_newline_is_kept_with_a_warning(
    pack: type[bytes], cut: int, kept: int, cli: Cli
) -> None:
    Path("week.csv").write_bytes(pack(ROWS[:-cut]))

    for options in ([], ["--quiet", "--overwrite"]):
        ran = cli(*WEEK, *options)

        assert ran.exit_code == 0
        assert ran.stderr.endswith(f"warning: week.csv, line 3: {UNENDED}\n")
        assert ("b", AS_OF, kept) in read_observations("out.db")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_strict_refuses_a_last_row_without_a_newline(pack: type[bytes], cli: Cli) -> None:
    Path("week.csv").write_bytes(pack(ROWS[:-1]))

    ran = cli(*WEEK, "--strict")

    assert (ran.exit_code, ran.stderr) == (6, f"error: week.csv, line 3: {UNENDED}\n")
    assert not Path("out.db").exists()
