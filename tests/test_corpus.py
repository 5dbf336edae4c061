"""The program says what it said before."""

from pathlib import Path

import pytest

from corpus.sessions import TRANSCRIPTS, compare_transcript


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.iterdir()), ids=lambda path: path.stem)
def test_the_program_says_what_it_said_before(path: Path) -> None:
    difference = compare_transcript(path)

    if difference:
        pytest.fail("".join(["`make corpus` shows and stores it:\n", *difference]), pytrace=False)
