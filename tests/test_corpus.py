"""The program says what it said before."""

from pathlib import Path

import pytest

from corpus.sessions import TRANSCRIPTS, compare_transcript


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.iterdir()), ids=lambda path: path.stem)
def test_the_program_says_what_it_said_before(path: Path) -> None:
    difference = compare_transcript(path)

    if difference:
        remedy = "`make corpus` shows this, and `make corpus WRITE=1` stores it:\n"
        pytest.fail(remedy + "".join(difference), pytrace=False)
